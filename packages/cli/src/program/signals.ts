const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** A Ctrl-C arrives from the terminal, and again through npm and the script that started us. */
const ECHO_MS = 500;

/** Calls `stop` at the first Ctrl-C; a second one ends the process. */
export function onStopSignal(stop: () => void): { release(): void } {
  let firstAt: number | undefined;
  const onSignal = () => {
    if (firstAt === undefined) {
      firstAt = performance.now();
      stop();
    } else if (performance.now() - firstAt > ECHO_MS) {
      process.exit(130);
    }
  };
  for (const name of SIGNALS) process.on(name, onSignal);
  const release = () => {
    for (const name of SIGNALS) process.off(name, onSignal);
  };
  return { release };
}

/** A signal that is aborted by the first Ctrl-C; a second one ends the process. */
export function abortOnSignal(): { readonly signal: AbortSignal; release(): void } {
  const controller = new AbortController();
  return { signal: controller.signal, ...onStopSignal(() => controller.abort()) };
}
