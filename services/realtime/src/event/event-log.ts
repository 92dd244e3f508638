import { setImmediate as nextTurn } from 'node:timers/promises';
import { CallQueue } from '@latchkey/kit/call-queue';
import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';
import type { Frame } from '../frame/frame.ts';
import { type AppsClient, PAGE_EVENTS } from './apps-client.ts';
import { SharedCalls } from './shared-calls.ts';

/** Which events are read. */
export interface LogRequest {
  readonly applicationId: string;
  readonly afterSequence: number;
  /** The newest event that the log is known to have had, or infinity to read to its end. */
  readonly lastSequence: number;
  /** The request of the client that they are read for. Of clients that share a call, it is made for the first. */
  readonly requestId?: string;
}

/** Pages end where their number of events divides the sequence, so that whoever reads about there shares them. */
type Page = readonly Frame[];

/** Reads of clients that come back, of which one application may have thousands. */
const CLIENT_READS = { underWay: 16, underWayOfKey: 2, size: 4_000, sizeOfKey: 1_000, waitMs: 4_000 };
/** How long a page is kept, in milliseconds. Events never change, but they are trimmed. */
const KEPT_MS = 1_000;
const KEPT_BYTES_MAX = 16 * 1024 * 1024;
/** What a frame takes beside its bytes, or a little more. */
const FRAME_BYTES = 200;

/** The event log of all applications, as apps keeps it. */
export class EventLog {
  readonly #apps: Pick<AppsClient, 'listFrames'>;
  readonly #kept: LRUCache<string, Page>;
  readonly #clientReads = new SharedCalls<Page>();
  readonly #hubReads = new SharedCalls<Page>();
  readonly #queue = new CallQueue(CLIENT_READS);
  /** Whoever gets a page that is kept sends it before the next one gets theirs, and others are served in between. */
  readonly #turn = pLimit(1);

  /** @param clock tells how long a page has been kept */
  constructor(apps: Pick<AppsClient, 'listFrames'>, clock: { now(): number } = performance) {
    this.#apps = apps;
    const sizeCalculation = (page: Page) => page.reduce((sum, { bytes }) => sum + bytes.byteLength + FRAME_BYTES, FRAME_BYTES);
    this.#kept = new LRUCache({ maxSize: KEPT_BYTES_MAX, sizeCalculation, ttl: KEPT_MS, ttlResolution: 0, perf: clock });
  }

  /**
   * Some events for a client that comes back, in order; they begin later where the log no longer holds the next. Waits for others who read for clients.
   * Throws `dependency_unavailable` where too many do.
   */
  readForClient(request: LogRequest): Promise<Page> {
    const { applicationId } = request;
    return this.#read(request, this.#clientReads, (read) => {
      this.#queue.check(applicationId);
      return this.#queue.run(applicationId, read);
    });
  }

  /** The same for a hub, without a wait: they are looked at some at a time. */
  readForHub(request: LogRequest): Promise<Page> {
    return this.#read(request, this.#hubReads, (read) => read());
  }

  async #read(request: LogRequest, reads: SharedCalls<Page>, begin: (read: () => Promise<Page>) => Promise<Page>): Promise<Page> {
    const { applicationId, afterSequence, lastSequence, requestId } = request;
    const start = afterSequence - (afterSequence % PAGE_EVENTS);
    const key = `${applicationId} ${start}`;
    /** The page that is kept, where it has all that it has to have up to a sequence. */
    const keptUpTo = (sequence: number) => {
      const page = this.#kept.get(key);
      return page && (page.at(-1)?.sequence ?? 0) >= Math.min(sequence, start + PAGE_EVENTS) ? page : undefined;
    };
    const read = async () => {
      // One that is full stays so, and will do for all that share this call.
      const full = keptUpTo(Number.POSITIVE_INFINITY);
      if (full) return full;
      const page = await this.#apps.listFrames(applicationId, start, requestId);
      this.#kept.set(key, page);
      return page;
    };
    if (keptUpTo(lastSequence)) await this.#turn(() => nextTurn());
    const page = keptUpTo(lastSequence) ?? (await reads.ask(key, () => begin(read)));
    return page.filter(({ sequence }) => sequence > afterSequence);
  }
}
