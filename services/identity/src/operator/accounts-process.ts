import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { OPERATOR } from '@latchkey/audit/actor';
import { PRINCIPAL_AGE_MS_MAX } from '@latchkey/contract/principal-age';
import { ConfigError } from '@latchkey/kit/config/settings';
import { DomainError } from '@latchkey/kit/errors/errors';
import { createLogger } from '@latchkey/kit/log/logger';
import { endOnSignal } from '@latchkey/kit/process/end-on-signal';
import pg from 'pg';
import type { IdentityConfig } from '../config.ts';
import { openContext } from '../context.ts';
import { COMMANDS, type CommandCall, type CommandResult } from './commands.ts';
import { type PasswordInput, readNewPassword } from './password-prompt.ts';

export interface AccountsTarget {
  readonly config: IdentityConfig;
  /** `unknown`: gateways may run, but not their Redis is known: their caches have to expire. */
  readonly listeners: 'by-redis' | 'none' | 'unknown';
  close(): Promise<void>;
}

type AccountsCall = Exclude<ReturnType<typeof parseAccountsCall>, 'help'>;

const COMMON_OPTIONS = { json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } } as const;

/**
 * Runs an operator's command as this process, and sets its exit code. A signal ends it immediately:
 * a change is one transaction.
 */
export async function runAccountsProcess(options: {
  readonly command: string;
  readonly args: readonly string[];
  readonly open: () => Promise<AccountsTarget>;
}): Promise<void> {
  let call: AccountsCall | 'help';
  try {
    call = parseAccountsCall(options.args);
  } catch (err) {
    process.stderr.write(`${(err as Error).message}\nSee ${options.command} --help\n`);
    process.exitCode = 2;
    return;
  }
  if (call === 'help') return void process.stdout.write(helpOf(options.command));
  let target: AccountsTarget | undefined;
  const ending = endOnSignal(async () => target?.close(), 1);
  try {
    target = await options.open();
    const { text, json } = await runAccounts(target, call, process.stdin, process.stderr);
    process.stdout.write(`${call.values.json ? JSON.stringify(json) : text}\n`);
  } catch (err) {
    // A command cut short by a signal fails for no other reason.
    if (ending.begun()) return;
    const error = explain(err);
    if (call.values.json) process.stdout.write(`${JSON.stringify({ error })}\n`);
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
  await target?.close();
}

/** @throws {Error} with what is wrong, without values, which may be secrets */
export function parseAccountsCall([name = '', ...rest]: readonly string[]) {
  if (['help', '--help', '-h'].includes(name)) return 'help' as const;
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!command) throw new Error(name === '' ? 'A command is needed.' : 'There is no such command.');
  let parsed: ReturnType<typeof parseArgs>;
  try {
    parsed = parseArgs({ args: rest, options: { ...command.options, ...COMMON_OPTIONS }, allowPositionals: true });
  } catch (err) {
    // After the first sentence comes advice that quotes values.
    throw new Error(`${(err as Error).message.split(/[.\n]/)[0]}.`);
  }
  const { positionals } = parsed;
  const values = parsed.values as CommandCall['values'];
  if (values.help) return 'help' as const;
  const problem = command.check?.(values);
  if (problem) throw new Error(problem);
  if (positionals.length !== command.argCount) throw new Error(`Usage: ${name} ${command.usage}`);
  return { command, args: positionals, values };
}

export async function runAccounts(
  { config, listeners }: AccountsTarget,
  { command, args, values }: AccountsCall,
  input: PasswordInput,
  err: { write(text: string): unknown },
): Promise<CommandResult> {
  const isUnknown = listeners === 'unknown';
  const why = isUnknown ? 'No Redis is known, as REDIS_URL is not set and none was found' : 'Redis does not answer';
  const wait = async (ms: number) => {
    err.write(`${why}: waiting ${ms / 1_000} s, after which it holds everywhere.\n`);
    await delay(ms);
  };
  const end = async () => (isUnknown ? wait(PRINCIPAL_AGE_MS_MAX) : undefined);
  const withoutRedis = { read: async () => ({ key: '', value: '' }), end };
  const logger = createLogger('identity', 'silent');
  const opened = openContext(config, logger, { wait, ...(listeners !== 'by-redis' && { epochs: withoutRedis }) });
  try {
    await opened.connect();
    const ctx = { ...opened.ctx, origin: OPERATOR };
    return await command.run({ ctx, args, values, readPassword: () => readNewPassword(input, err) });
  } finally {
    await opened.close();
  }
}

const SCHEMA_OUTDATED = new Set(['42P01', '42703']);

export function explain(err: unknown): { readonly reason: string; readonly message: string } {
  if (err instanceof DomainError) return { reason: err.reason, message: `${err.message}.` };
  if (err instanceof ConfigError) {
    return { reason: 'settings_wrong', message: `Wrong settings:\n${err.message.replace(/^/gm, '  ')}` };
  }
  if (err instanceof pg.DatabaseError && SCHEMA_OUTDATED.has(err.code ?? '')) {
    const message = 'The tables of the identity service are missing or outdated. Start Latchkey once, or check the settings.';
    return { reason: 'schema_missing', message };
  }
  const { message, code } = err as NodeJS.ErrnoException;
  return { reason: 'failed', message: `The command failed: ${(message || code || 'no answer').replace(/\.$/, '')}.` };
}

function helpOf(program: string): string {
  const commands = Object.entries(COMMANDS).map(([name, { usage, summary }]) => `  ${name} ${usage}\n      ${summary}\n`);
  return `Usage: ${program} COMMAND [--json]

${commands.join('')}
ACCOUNT is an email, a username or an id. A password is read from standard input: a terminal asks for it
twice, a pipe gives one line; --generate makes one and shows it once. A change holds from the next
request on, also with a running Latchkey.

Values that begin with a dash come after an equals sign, as in --username=-ada, or after all options and
two dashes, as in: reset-password --generate -- -ada

  --json   print one JSON object, also for an error
  --help   show this

Exit code: 0 done; 1 rejected, not found or failed; 2 wrong usage.
`;
}
