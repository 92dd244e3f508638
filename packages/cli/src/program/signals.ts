const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** A Ctrl-C arrives from the terminal, and again through npm and the script that started us. */
const ECHO_MS = 500;

let stopping: AbortSignal | undefined;

/** Aborted by the first Ctrl-C of this process. A second one ends the process. */
export function stopSignal(): AbortSignal {
  stopping ??= abortOnSignal();
  return stopping;
}

function abortOnSignal(): AbortSignal {
  const controller = new AbortController();
  let firstAt: number | undefined;
  const onSignal = () => {
    if (firstAt !== undefined && performance.now() - firstAt > ECHO_MS) process.exit(130);
    firstAt ??= performance.now();
    controller.abort();
  };
  for (const name of SIGNALS) process.on(name, onSignal);
  return controller.signal;
}
