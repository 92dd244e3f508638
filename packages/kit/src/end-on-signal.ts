import { constants } from 'node:os';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Ends this process, which runs a command, on a signal, or with the script that started it, or when nobody reads what it prints, as when that goes
 * to `head`. A first signal closes what was started; the next one, or the same from a terminal and from a script, does not wait for that.
 *
 * @param close ends what the command has started
 * @param brokenCode exit code for when nobody reads; for a signal it is 128 and the signal's number
 * @returns whether the end has begun, so that what is cut by it is not told as a failure
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
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => end(brokenCode));
  return { begun: () => begun };
}
