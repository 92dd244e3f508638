import { constants } from 'node:os';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Ends a command on a signal, when the script that started it is gone, or with `brokenCode` when
 * its output is closed, as by `head`. Further signals do not interrupt the end.
 *
 * @returns whether the end has begun, so that what it interrupts is not reported as a failure
 */
export function endOnSignal(close: () => Promise<unknown>, brokenCode: number): { begun(): boolean } {
  let begun = false;
  const end = (code: number) => {
    if (begun) return;
    begun = true;
    close().finally(() => process.exit(code));
  };
  for (const signal of SIGNALS) process.on(signal, () => end(128 + constants.signals[signal]));
  process.once('disconnect', () => end(128 + constants.signals.SIGTERM));
  process.channel?.unref();
  for (const stream of [process.stdout, process.stderr]) stream.removeAllListeners('error').on('error', () => end(brokenCode));
  return { begun: () => begun };
}
