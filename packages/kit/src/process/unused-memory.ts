import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const CHECK_INTERVAL_MS = 20_000;
/** Share of its time in which an idle process runs code at most. */
const IDLE_UTILIZATION_MAX = 0.1;
/** Growth of the heap since the last collection that is worth another one. */
const GROWTH_BYTES = 8 * 1024 * 1024;

/**
 * Collects garbage now and after each burst of load: V8 enlarges the space for young objects under
 * load, and does not always shrink it in an idle process. A collection takes about 0.1 s.
 */
export function releaseUnusedMemory(checkIntervalMs = CHECK_INTERVAL_MS): void {
  let last = performance.eventLoopUtilization();
  let restingBytes = 0;
  const collect = () => {
    // V8 exposes `gc` only in contexts that are created after the flag is set.
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('gc') as NodeJS.GCFunction;
    setFlagsFromString('--no-expose-gc');
    gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    restingBytes = collectableBytes();
  };
  const check = () => {
    const now = performance.eventLoopUtilization();
    const isIdle = performance.eventLoopUtilization(now, last).utilization <= IDLE_UTILIZATION_MAX;
    last = now;
    if (isIdle && collectableBytes() > restingBytes + GROWTH_BYTES) collect();
  };
  collect();
  setInterval(check, checkIntervalMs).unref();
}

/** The memory that a collection can release. The resident set has more, which hides growth. */
function collectableBytes(): number {
  const { heapTotal, external } = process.memoryUsage();
  return heapTotal + external;
}
