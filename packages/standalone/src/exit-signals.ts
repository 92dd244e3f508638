const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** A Ctrl-C reaches us from the terminal and again through npm and the script that started us. */
const ECHO_MS = 500;

/**
 * Listens for the wish to stop: a signal, or the end of the script that started us. The first stops in order, a second
 * one at once.
 */
export function onExitWish(stop: () => void, stopAtOnce: () => void): void {
  let firstAt: number | undefined;
  const wish = () => {
    if (firstAt === undefined) {
      firstAt = performance.now();
      stop();
    } else if (performance.now() - firstAt > ECHO_MS) {
      stopAtOnce();
    }
  };
  for (const signal of SIGNALS) process.on(signal, wish);
  process.once('disconnect', wish);
  process.channel?.unref();
}
