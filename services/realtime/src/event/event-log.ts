import { setImmediate as nextTurn } from 'node:timers/promises';
import { CallQueue } from '@latchkey/kit/concurrency/call-queue';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';
import type { Frame } from '../frame/frame.ts';
import { type AppsClient, PAGE_EVENTS } from './apps-client.ts';
import { SharedCalls } from './shared-calls.ts';

export interface LogRequest {
  readonly applicationId: string;
  readonly afterSequence: number;
  /** The newest event that is known to exist, or infinity to read to the end. */
  readonly lastSequence: number;
  /** The client's request; clients that share a call use the first one's. */
  readonly requestId?: string;
  /** Latest start of a call, as `performance.now()` counts. */
  readonly deadline?: number | undefined;
}

/** Events up to a multiple of {@link PAGE_EVENTS}, so that clients share pages. */
type Page = readonly Frame[];

/**
 * Limits on reads for reconnecting clients, of which one application may have thousands. Concurrent
 * reads share a request.
 */
const CLIENT_READS = { concurrency: 128, concurrencyPerKey: 2, size: 4_000, sizePerKey: 1_000, waitMs: DEADLINES_MS.queue };
/** Lifetime of cached pages: events never change, but the log is trimmed. */
const CACHE_MS = 1_000;
const CACHE_BYTES_MAX = 16 * 1024 * 1024;
/** Memory of a frame besides its bytes. */
const FRAME_BYTES = 200;

/** The event log of all applications, read from the apps service. */
export class EventLog {
  readonly #apps: Pick<AppsClient, 'listFrames'>;
  readonly #cache: LRUCache<string, Page>;
  readonly #clientReads = new SharedCalls<Page>();
  readonly #hubReads = new SharedCalls<Page>();
  readonly #queue = new CallQueue(CLIENT_READS);
  /** One cached page per turn of the event loop, as each is sent immediately. */
  readonly #turn = pLimit(1);

  constructor(apps: Pick<AppsClient, 'listFrames'>, clock: { now(): number } = performance) {
    this.#apps = apps;
    const sizeCalculation = (page: Page) => page.reduce((sum, { bytes }) => sum + bytes.byteLength + FRAME_BYTES, FRAME_BYTES);
    this.#cache = new LRUCache({ maxSize: CACHE_BYTES_MAX, sizeCalculation, ttl: CACHE_MS, ttlResolution: 0, perf: clock });
  }

  /**
   * The next events for a reconnecting client; they begin later where the log was trimmed.
   *
   * @throws `queue_full`, and `dependency_unavailable` after too long a wait
   */
  readForClient(request: LogRequest): Promise<Page> {
    const { applicationId, deadline } = request;
    return this.#read(request, this.#clientReads, (read) => {
      this.#queue.check(applicationId);
      return this.#queue.run(applicationId, read, deadline);
    });
  }

  /** The same for a hub, without the queue, since the reconciler limits concurrency. */
  readForHub(request: LogRequest): Promise<Page> {
    return this.#read(request, this.#hubReads, (read) => read());
  }

  async #read(request: LogRequest, reads: SharedCalls<Page>, begin: (read: () => Promise<Page>) => Promise<Page>): Promise<Page> {
    const { applicationId, afterSequence, lastSequence, requestId } = request;
    const start = afterSequence - (afterSequence % PAGE_EVENTS);
    const key = `${applicationId} ${start}`;
    /** The cached page, where it is complete up to a sequence. */
    const cachedUpTo = (sequence: number) => {
      const page = this.#cache.get(key);
      return page && (page.at(-1)?.sequence ?? 0) >= Math.min(sequence, start + PAGE_EVENTS) ? page : undefined;
    };
    const read = async () => {
      const full = cachedUpTo(Number.POSITIVE_INFINITY);
      if (full) return full;
      const page = await this.#apps.listFrames(applicationId, start, requestId);
      this.#cache.set(key, page);
      return page;
    };
    if (cachedUpTo(lastSequence)) await this.#turn(() => nextTurn());
    const page = cachedUpTo(lastSequence) ?? (await reads.ask(key, () => begin(read)));
    return page.filter(({ sequence }) => sequence > afterSequence);
  }
}
