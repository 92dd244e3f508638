import { endOnSignal } from '@latchkey/kit/end-on-signal';
import type { FilesConfig } from '../../config.ts';
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
  const ending = endOnSignal(async () => target?.close(), EXIT.failed);
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
