const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** A Ctrl-C arrives from the terminal and again through npm and the script that started us. */
const ECHO_MS = 500;

/**
 * Calls `stop` at the first signal, or when the script that started us ends, and `kill` at a
 * second signal.
 */
export function onExitWish(stop: () => void, kill: () => void): void {
  let firstAt: number | undefined;
  const onWish = () => {
    if (firstAt === undefined) {
      firstAt = performance.now();
      stop();
    } else if (performance.now() - firstAt > ECHO_MS) {
      kill();
    }
  };
  for (const signal of SIGNALS) process.on(signal, onWish);
  process.once('disconnect', onWish);
  process.channel?.unref();
}
