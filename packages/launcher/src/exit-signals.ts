const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** A Ctrl-C arrives from the terminal and again through npm and the script that started us. */
const ECHO_MS = 500;

/** Calls `stop` at the first signal or when our parent ends, and `kill` at a second signal. */
export function onExitSignal(stop: () => void, kill: () => void): void {
  let firstAt: number | undefined;
  const onSignal = () => {
    if (firstAt === undefined) {
      firstAt = performance.now();
      stop();
    } else if (performance.now() - firstAt > ECHO_MS) {
      kill();
    }
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  process.once('disconnect', onSignal);
  process.channel?.unref();
}
