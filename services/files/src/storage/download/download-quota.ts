import type { ServerResponse } from 'node:http';
import { ConcurrencyLimit, shareOf } from '../../concurrency-limit.ts';
import { errors } from '../../errors.ts';
import { downloadsMax, downloadsOpen } from '../../files-metrics.ts';

/** Seconds until a retry: the time in which the gateway closes a slow reader. */
const RETRY_AFTER_S = 10;

/** Whom a download counts for. */
export interface DownloadOwner {
  /** Network of the client, as `networkOf` names it. */
  readonly clientNetwork: string;
  readonly fileId: string;
}

/** Limits concurrent downloads: of the process, per network and per file. */
export class DownloadQuota {
  readonly #max: number;
  readonly #ofNetwork: ConcurrencyLimit;
  readonly #ofFile: ConcurrencyLimit;
  #count = 0;

  constructor(max: number) {
    this.#max = max;
    this.#ofNetwork = new ConcurrencyLimit(shareOf(max));
    this.#ofFile = new ConcurrencyLimit(shareOf(max));
    downloadsOpen.watch(() => [[this.#count]]);
    downloadsMax.watch(() => [[max]]);
  }

  /**
   * Counts a download from before it is opened until its response is closed.
   *
   * @throws DomainError `downloads_of_network`, `downloads_of_file` or `too_many_downloads`
   */
  async run(res: ServerResponse, owner: DownloadOwner, download: () => Promise<void>): Promise<void> {
    this.#checkLimits(owner);
    this.#add(owner, 1);
    try {
      await download();
    } finally {
      // A client that goes away while the object is being opened has not closed that.
      if (res.closed) this.#add(owner, -1);
      else res.once('close', () => this.#add(owner, -1));
    }
  }

  #checkLimits({ clientNetwork, fileId }: DownloadOwner): void {
    if (this.#ofNetwork.isReached(clientNetwork)) {
      throw errors.downloads_of_network(limitFacts('downloads-at-once-ip', this.#ofNetwork.max));
    }
    if (this.#ofFile.isReached(fileId)) throw errors.downloads_of_file(limitFacts('downloads-at-once-file', this.#ofFile.max));
    if (this.#count >= this.#max) throw errors.too_many_downloads();
  }

  #add({ clientNetwork, fileId }: DownloadOwner, change: 1 | -1): void {
    this.#count += change;
    this.#ofNetwork.add(clientNetwork, change);
    this.#ofFile.add(fileId, change);
  }
}

/** Metadata from which the headers of a 429 are made. */
function limitFacts(policy: string, limit: number): Record<string, string> {
  const seconds = String(RETRY_AFTER_S);
  return { policy, limit: String(limit), windowSeconds: seconds, remaining: '0', retryAfterSeconds: seconds };
}
