import type { ServerResponse } from 'node:http';
import { errors } from '../errors.ts';
import { downloadsMax, downloadsOpen } from '../files-metrics.ts';

/** Counts the downloads that are open, so that readers who do not read take no more than a part of the memory and the descriptors. */
export class OpenDownloads {
  readonly #max: number;
  #count = 0;

  constructor(max: number) {
    this.#max = max;
    downloadsOpen.watch(() => [[this.#count]]);
    downloadsMax.watch(() => [[max]]);
  }

  /**
   * Counts a download from before it is opened until its answer is closed.
   *
   * @throws DomainError `too_many_downloads`
   */
  async during(res: ServerResponse, download: () => Promise<void>): Promise<void> {
    if (this.#count >= this.#max) throw errors.too_many_downloads();
    this.#count += 1;
    const leave = () => {
      this.#count -= 1;
    };
    try {
      await download();
    } finally {
      // A client that goes away while the object is being opened has not closed that.
      if (res.closed) leave();
      else res.once('close', leave);
    }
  }
}
