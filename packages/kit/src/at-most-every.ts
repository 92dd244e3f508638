/**
 * The same question asked once for all who ask at the same time, and for those who ask soon after. What it fails with is an answer like any other.
 *
 * @param ageMsMax how long an answer stands, in milliseconds
 */
export function atMostEvery<T>(ageMsMax: number, ask: () => Promise<T>): () => Promise<T> {
  let answer: Promise<T> | undefined;
  let staleAt = 0;
  return () => {
    if (!answer || performance.now() >= staleAt) {
      staleAt = Number.POSITIVE_INFINITY;
      answer = ask().finally(() => {
        staleAt = performance.now() + ageMsMax;
      });
    }
    return answer;
  };
}
