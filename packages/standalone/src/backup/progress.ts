const INTERVAL_MS = 2_000;
const MIB = 1024 * 1024;

/**
 * Reports how far a long step is, at most every two seconds, and its end.
 *
 * @param what the step, as the start of a sentence: "Copying the database"
 * @param totalBytes where it is known
 * @returns takes the bytes that were done since the last call
 */
export function startProgress(what: string, note: (line: string) => void, totalBytes?: number) {
  let done = 0;
  let reportedAt = performance.now();
  return {
    add(count: number) {
      done += count;
      if (performance.now() - reportedAt < INTERVAL_MS) return;
      reportedAt = performance.now();
      note(`  ${what}: ${mib(done)} ${totalBytes === undefined ? 'MiB so far' : `of ${mib(totalBytes)} MiB`}.`);
    },
    end: () => note(`  ${what}: ${mib(done)} MiB.`),
  };
}

const mib = (bytes: number) => (bytes / MIB).toFixed(1);
