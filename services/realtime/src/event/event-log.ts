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

export type EventLog = ReturnType<typeof createEventLog>;

/** The event log of all applications, read from the apps service. */
export function createEventLog(apps: Pick<AppsClient, 'listFrames'>, clock: { now(): number } = performance) {
  const sizeCalculation = (page: Page) => page.reduce((sum, { bytes }) => sum + bytes.byteLength + FRAME_BYTES, FRAME_BYTES);
  const cache = new LRUCache<string, Page>({
    maxSize: CACHE_BYTES_MAX,
    sizeCalculation,
    ttl: CACHE_MS,
    ttlResolution: 0,
    perf: clock,
  });
  const clientReads = new SharedCalls<Page>();
  const hubReads = new SharedCalls<Page>();
  const queue = new CallQueue(CLIENT_READS);
  /** One cached page per turn of the event loop, as each is sent immediately. */
  const turn = pLimit(1);
  const read = async (request: LogRequest, reads: SharedCalls<Page>, begin: (read: () => Promise<Page>) => Promise<Page>) => {
    const { applicationId, afterSequence, lastSequence, requestId } = request;
    const start = afterSequence - (afterSequence % PAGE_EVENTS);
    const key = `${applicationId} ${start}`;
    /** The cached page, where it is complete up to a sequence. */
    const cachedUpTo = (sequence: number) => {
      const page = cache.get(key);
      return page && (page.at(-1)?.sequence ?? 0) >= Math.min(sequence, start + PAGE_EVENTS) ? page : undefined;
    };
    const readPage = async () => {
      const full = cachedUpTo(Number.POSITIVE_INFINITY);
      if (full) return full;
      const page = await apps.listFrames(applicationId, start, requestId);
      cache.set(key, page);
      return page;
    };
    if (cachedUpTo(lastSequence)) await turn(() => nextTurn());
    const page = cachedUpTo(lastSequence) ?? (await reads.ask(key, () => begin(readPage)));
    return page.filter(({ sequence }) => sequence > afterSequence);
  };
  return {
    /**
     * The next events for a reconnecting client; they begin later where the log was trimmed.
     *
     * @throws `queue_full`, and `dependency_unavailable` after too long a wait
     */
    readForClient: (request: LogRequest): Promise<Page> =>
      read(request, clientReads, (readPage) => {
        queue.check(request.applicationId);
        return queue.run(request.applicationId, readPage, request.deadline);
      }),
    /** The same for a hub, without the queue, since the reconciler limits concurrency. */
    readForHub: (request: LogRequest): Promise<Page> => read(request, hubReads, (readPage) => readPage()),
  };
}
