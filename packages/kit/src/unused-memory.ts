import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** How often it is checked whether a burst has ended, in milliseconds. */
const CHECK_INTERVAL_MS = 20_000;
/** Share of that time in which an idle process runs code at most. */
const IDLE_UTILIZATION_MAX = 0.1;
/** Growth of the resident set, since the last collection, that is worth another one. */
const GROWTH_FACTOR = 1.25;

/** What {@link MemoryRelease} measures and does. */
export interface MemoryReleaseOptions {
  /** Collects all garbage, and shrinks the heap to what is left. */
  readonly collect: () => void;
  /** Resident set of the process, in bytes. */
  readonly residentBytes: () => number;
  /** Share of the time since the last call in which the process ran code, 0 to 1. */
  readonly utilization: () => number;
}

/**
 * Collects garbage once after each burst of load. V8 enlarges the space for young objects under
 * load, and never shrinks it in an idle process (ADR 16).
 */
export class MemoryRelease {
  readonly #options: MemoryReleaseOptions;
  #restingBytes = 0;

  constructor(options: MemoryReleaseOptions) {
    this.#options = options;
  }

  /** Collects if the process is idle, and has grown by a quarter since the last collection. */
  check(): void {
    const { utilization, residentBytes } = this.#options;
    const isIdle = utilization() <= IDLE_UTILIZATION_MAX;
    if (isIdle && residentBytes() > this.#restingBytes * GROWTH_FACTOR) this.collect();
  }

  /** Collects now. */
  collect(): void {
    this.#options.collect();
    this.#restingBytes = this.#options.residentBytes();
  }
}

/**
 * Releases the memory that a process needed only to start, which is a quarter of it, and from then
 * on what each burst of load needed. A collection takes about 0.1 s, in which nothing else runs.
 *
 * @param checkIntervalMs time between two checks, in milliseconds
 */
export function releaseUnusedMemory(checkIntervalMs = CHECK_INTERVAL_MS): void {
  let last = performance.eventLoopUtilization();
  const utilization = () => {
    const now = performance.eventLoopUtilization();
    const { utilization: share } = performance.eventLoopUtilization(now, last);
    last = now;
    return share;
  };
  const release = new MemoryRelease({ collect: collectGarbage, residentBytes: process.memoryUsage.rss, utilization });
  release.collect();
  setInterval(() => release.check(), checkIntervalMs).unref();
}

function collectGarbage(): void {
  // The only way to collect: V8 exposes `gc` in contexts that are created after the flag is set.
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as NodeJS.GCFunction;
  setFlagsFromString('--no-expose-gc');
  gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}
