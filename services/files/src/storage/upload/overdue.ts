/** How long a store may take to leave off and tidy up before nobody waits for it any more, in milliseconds. */
const GRACE_MS = 2_000;

/** Work that has not ended in time after it was told to; its cause is why it was told. It may still have effects. */
export class Overdue extends Error {
  override readonly name = 'Overdue';
}

/** Waits for work that a signal ends, but not for ever: throws {@link Overdue} some time after the signal. */
export async function unlessOverdue<T>(work: Promise<T>, signal: AbortSignal, graceMs = GRACE_MS): Promise<T> {
  const { promise: overdue, reject } = Promise.withResolvers<never>();
  let timer: NodeJS.Timeout | undefined;
  const onAbort = () => {
    timer = setTimeout(() => reject(new Overdue('told to end, and has not', { cause: signal.reason })), graceMs);
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work, overdue]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}
