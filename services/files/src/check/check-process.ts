import { constants } from 'node:os';
import type { FilesConfig } from '../config.ts';
import { type CheckArguments, checkHelp, readCheckArguments } from './check-arguments.ts';
import { EXIT, explainCheckError, runCheck } from './check-command.ts';

/** The settings to check with, and the end of what they need. */
export interface CheckTarget {
  readonly config: FilesConfig;
  close(): Promise<void>;
}

/** The command as it is called. */
export interface CheckProcess {
  /** How, such as `npm run check-files --`, for the help. */
  readonly command: string;
  readonly args: readonly string[];
  /** Finds what to check, and starts what that needs. */
  open(): Promise<CheckTarget>;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Runs a check as this process and sets its exit code. A signal, or the end of the script that started us, ends it at once: each step of
 * mending is one transaction, and what that leaves to be done the sweeper does.
 */
export async function runCheckProcess({ command, args, open }: CheckProcess): Promise<void> {
  const wanted = readArguments(args, command);
  if (wanted === undefined) return;
  if (wanted.help) {
    process.stdout.write(checkHelp(command));
    return;
  }
  let target: CheckTarget | undefined;
  const ending = endOnSignal(async () => target?.close());
  try {
    target = await open();
    process.exitCode = await runCheck(target.config, wanted, { command, out: process.stdout, err: process.stderr });
  } catch (err) {
    // What is stopped under way fails for that reason only.
    if (ending.begun()) return;
    fail(explainCheckError(err));
  }
  await target?.close();
}

function readArguments(args: readonly string[], command: string): CheckArguments | undefined {
  try {
    return readCheckArguments(args);
  } catch (err) {
    fail(`${(err as Error).message.split('\n')[0]}\n\n${checkHelp(command)}`);
    return undefined;
  }
}

function fail(text: string): void {
  process.stderr.write(`${text}\n`);
  process.exitCode = EXIT.failed;
}

/** A first signal closes what was started; the next one, or the same from a terminal and from a script, does not wait for that. */
function endOnSignal(close: () => Promise<unknown>): { begun(): boolean } {
  let begun = false;
  const end = (code: number) => {
    if (begun) return;
    begun = true;
    close().finally(() => process.exit(code));
  };
  for (const signal of SIGNALS) process.on(signal, () => end(128 + constants.signals[signal]));
  process.once('disconnect', () => end(128 + constants.signals.SIGTERM));
  process.channel?.unref();
  // Whoever reads what we print may go away, as `head` does.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => end(EXIT.failed));
  return { begun: () => begun };
}
