import { endOnSignal } from '@latchkey/kit/end-on-signal';
import { type AccountsArguments, accountsHelp, readAccountsArguments } from './accounts-arguments.ts';
import { type AccountsTarget, runAccounts } from './accounts-command.ts';
import { explainFailure } from './explain-failure.ts';

/** Exit codes of the command. */
const EXIT = { done: 0, refused: 1, usage: 2 } as const;

/** The command as it is called. */
export interface AccountsProcess {
  /** How, such as `npm run accounts --`, for the help. */
  readonly command: string;
  readonly args: readonly string[];
  /** Finds the accounts, and starts what that needs. */
  open(): Promise<AccountsTarget>;
}

/** Runs a command for whoever runs Latchkey as this process, and sets its exit code. A signal ends it at once: a change is one transaction. */
export async function runAccountsProcess({ command, args, open }: AccountsProcess): Promise<void> {
  const wanted = readArguments(args, command);
  if (wanted === undefined) return;
  if (wanted.help) {
    process.stdout.write(accountsHelp(command));
    return;
  }
  let target: AccountsTarget | undefined;
  const ending = endOnSignal(async () => target?.close(), EXIT.refused);
  try {
    target = await open();
    const outcome = await runAccounts(target, wanted, { input: process.stdin, err: process.stderr });
    process.stdout.write(`${wanted.json ? JSON.stringify(outcome.json) : outcome.text}\n`);
  } catch (err) {
    // What is stopped under way fails for that reason only.
    if (ending.begun()) return;
    tellFailure(err, wanted.json);
  }
  await target?.close();
}

function readArguments(args: readonly string[], command: string): AccountsArguments | undefined {
  try {
    return readAccountsArguments(args);
  } catch (err) {
    process.stderr.write(`${(err as Error).message}\nSee ${command} --help\n`);
    process.exitCode = EXIT.usage;
    return undefined;
  }
}

function tellFailure(err: unknown, json: boolean): void {
  const { reason, message } = explainFailure(err);
  if (json) process.stdout.write(`${JSON.stringify({ error: { reason, message } })}\n`);
  process.stderr.write(`${message}\n`);
  process.exitCode = EXIT.refused;
}
