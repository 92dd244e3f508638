export type BodyReader = ReturnType<typeof createBodyReader>;

/** Reads a body, at most one chunk ahead, into buffers of the caller. */
export function createBodyReader(body: AsyncIterable<Uint8Array>, signal: AbortSignal) {
  const iterator = body[Symbol.asyncIterator]();
  let rest: Uint8Array = new Uint8Array(0);
  const aborted = Promise.withResolvers<never>();
  aborted.promise.catch(() => undefined);
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  const fill = async (target: Uint8Array) => {
    let filled = 0;
    while (filled < target.length) {
      if (rest.length === 0) {
        const { done, value } = await iterator.next();
        if (done) break;
        rest = value;
      }
      const chunk = rest.subarray(0, target.length - filled);
      target.set(chunk, filled);
      filled += chunk.length;
      rest = rest.subarray(chunk.length);
    }
    return filled;
  };
  return {
    /**
     * Fills a buffer, or less of it where the body ends; returns the number of bytes. Rejects when
     * the body does, and when the signal aborts, even while the body hangs.
     */
    async fill(target: Uint8Array): Promise<number> {
      signal.throwIfAborted();
      // A race for each chunk would retain a reaction of `aborted` for each.
      return Promise.race([fill(target), aborted.promise]);
    },
    close(): void {
      signal.removeEventListener('abort', onAbort);
      // Not awaited, as it hangs where the body does.
      void (async () => iterator.return?.())().catch(() => undefined);
    },
  };
}
