import type { ParseArgsConfig } from 'node:util';
import { describeLength, EMAIL_LENGTH_MAX, PASSWORD } from '@latchkey/contract/lengths';
import { USERNAME_LENGTH } from '@latchkey/contract/username';
import { DomainError } from '@latchkey/kit/errors/errors';
import { parseId } from '@latchkey/kit/validation/id';
import { customAlphabet } from 'nanoid';
import type { Account } from '../account/account.store.ts';
import { createAccount, findAccount, listAccounts, resetPassword } from '../account/account.ts';
import { isEmail, isPassword, isUsername } from '../account/account-rules.ts';
import { changeEmail } from '../account/change-email.ts';
import { findApiKey, revokeApiKey } from '../api-key/api-key.ts';
import type { ActingContext } from '../context.ts';
import { endAllSessions } from '../session/session.ts';
import { turnTwoFactorOff } from '../two-factor/two-factor.ts';

/** The error of a command, like those of use cases: its message ends without a full stop. */
export const commandError = (reason: string, message: string) => new DomainError(reason, { kind: 'invalid', message });

export interface CommandResult {
  readonly text: string;
  readonly json: object;
}

export interface CommandCall {
  readonly ctx: ActingContext;
  readonly args: readonly string[];
  readonly values: Readonly<Record<string, string | boolean | undefined>>;
  readonly readPassword: () => Promise<string>;
}

export interface Command {
  readonly usage: string;
  readonly summary: string;
  readonly argCount: number;
  readonly options?: NonNullable<ParseArgsConfig['options']>;
  check?(values: CommandCall['values']): string | undefined;
  run(call: CommandCall): Promise<CommandResult>;
}

const LIST_LIMIT = 50;

export const COMMANDS: Readonly<Record<string, Command>> = {
  list: {
    usage: '[--limit N] [--after ID]',
    summary: `show ${LIST_LIMIT} accounts, or N, from the first or after one`,
    argCount: 0,
    options: { limit: { type: 'string' }, after: { type: 'string' } },
    check({ limit = LIST_LIMIT, after }) {
      if (!/^([1-9]\d{0,2}|1000)$/.test(String(limit))) return '--limit must be a whole number from 1 to 1000.';
      return after === undefined || parseId(String(after)) ? undefined : '--after must be the id of an account.';
    },
    async run({ ctx, values: { limit = LIST_LIMIT, after } }) {
      const { accounts, next } = await listAccounts(ctx, parseId(String(after)), Number(limit));
      const rows = accounts.map(({ id, username, email, two_factor_enabled, created_at }) => {
        const twoFactor = two_factor_enabled ? 'two-factor' : '-'.padEnd(10);
        return [id, username.padEnd(32), twoFactor, created_at.toISOString(), email].join('  ');
      });
      const total = `${count(accounts.length, 'account')}.${next === null ? '' : ` There are more: --after ${next}`}`;
      return { text: [...rows, total].join('\n'), json: { accounts: accounts.map(accountJson), next } };
    },
  },
  create: {
    usage: '--username NAME --email ADDRESS [--generate]',
    summary: 'create an account, also where sign-up is closed',
    argCount: 0,
    options: { username: { type: 'string' }, email: { type: 'string' }, generate: { type: 'boolean' } },
    check: ({ username, email }) => (username && email ? undefined : 'create needs --username and --email.'),
    async run(call) {
      const [username, email] = [String(call.values.username), String(call.values.email)];
      if (!isUsername(username)) {
        throw commandError(
          'username_invalid',
          `The username must have ${describeLength(USERNAME_LENGTH)}: A to Z, a to z, 0 to 9, _ and -`,
        );
      }
      checkEmail(email);
      const password = await chooseNewPassword(call);
      const account = await createAccount(call.ctx, { username, email, password });
      return withPassword(call, password, {
        text: `Created the account ${nameOf(account)}, id ${account.id}.`,
        json: { account: accountJson(account) },
      });
    },
  },
  'reset-password': {
    usage: 'ACCOUNT [--generate] [--keep-links]',
    summary: 'set another password, end all sessions and remove the links to OpenID Connect issuers',
    argCount: 1,
    options: { generate: { type: 'boolean' }, 'keep-links': { type: 'boolean' } },
    run: onAccount(async (account, call) => {
      const password = await chooseNewPassword(call);
      const keepLinks = call.values['keep-links'] === true;
      const counts = await resetPassword(call.ctx, account.id, password, keepLinks);
      const links = keepLinks ? 'kept its links' : `removed ${count(counts.removedLinks, 'link')}`;
      const ended = count(counts.endedSessions, 'session');
      const text = `Set another password for ${nameOf(account)}, ended ${ended} and ${links}.`;
      return withPassword(call, password, { text, json: counts });
    }),
  },
  'change-email': {
    usage: 'ACCOUNT ADDRESS',
    summary: 'set another email, without a mail that confirms it',
    argCount: 2,
    run: onAccount(async (account, { ctx, args: [, email = ''] }) => {
      checkEmail(email);
      await changeEmail(ctx, account.id, email);
      const now = { ...account, email };
      return { text: `The email of ${account.username} is ${email} now.`, json: { account: accountJson(now) } };
    }),
  },
  'two-factor-off': {
    usage: 'ACCOUNT',
    summary: 'turn two-factor authentication off, which ends all sessions',
    argCount: 1,
    run: onAccount(async (account, { ctx }) => {
      const ended = await turnTwoFactorOff(ctx, account.id);
      const whose = `Two-factor authentication of ${nameOf(account)}`;
      const text = ended === undefined ? `${whose} was off already.` : `${whose} is off now. Ended ${count(ended, 'session')}.`;
      const now = accountJson({ ...account, two_factor_enabled: false });
      return { text, json: { account: now, changed: ended !== undefined, endedSessions: ended ?? 0 } };
    }),
  },
  'sign-out': {
    usage: 'ACCOUNT',
    summary: 'end all sessions',
    argCount: 1,
    run: onAccount(async (account, { ctx }) => {
      const endedSessions = await endAllSessions(ctx, account.id);
      return { text: `Ended ${count(endedSessions, 'session')} of ${nameOf(account)}.`, json: { endedSessions } };
    }),
  },
  'revoke-key': {
    usage: 'ACCOUNT KEY',
    summary: 'revoke a management key, named by its public id or its id',
    argCount: 2,
    run: onAccount(async (account, { ctx, args: [, name = ''] }) => {
      const found = await findApiKey(ctx, account.id, name);
      if (!found) throw commandError('api_key_not_found', `${account.username} has no key ${JSON.stringify(name)}`);
      const key = await revokeApiKey(ctx, { accountId: account.id, apiKeyId: found.id });
      const { id, public_id: publicId, revoked_at: revokedAt } = key;
      const when = found.revoked_at ? `was revoked already, at ${found.revoked_at.toISOString()}` : 'is revoked now';
      const text = `The key ${publicId} (${key.name}) of ${nameOf(account)} ${when}.`;
      return { text, json: { key: { id, publicId, revokedAt }, changed: !found.revoked_at } };
    }),
  },
};

/** Runs a command on the account that its first argument names, and adds it to the JSON. */
function onAccount(run: (account: Account, call: CommandCall) => Promise<CommandResult>): Command['run'] {
  return async (call) => {
    const [name = ''] = call.args;
    const account = await findAccount(call.ctx, name);
    if (!account) throw commandError('account_not_found', `There is no account ${JSON.stringify(name)}`);
    const { text, json } = await run(account, call);
    return { text, json: { account: accountJson(account), ...json } };
  };
}

function checkEmail(email: string): void {
  if (!isEmail(email))
    throw commandError('email_invalid', `The email must be an address of at most ${EMAIL_LENGTH_MAX} characters`);
}

/** Without letters and digits that resemble each other. */
const generatePassword = customAlphabet('23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz', 20);

async function chooseNewPassword({ values, readPassword }: CommandCall): Promise<string> {
  if (values.generate) return generatePassword();
  const password = await readPassword();
  if (isPassword(password)) return password;
  throw commandError('password_invalid', `The password must have ${describeLength(PASSWORD)}, and no NUL`);
}

function withPassword({ values }: CommandCall, password: string, { text, json }: CommandResult): CommandResult {
  return values.generate ? { text: `${text}\nPassword: ${password}`, json: { ...json, password } } : { text, json };
}

function nameOf({ username, email }: Account): string {
  return `${username} (${email})`;
}

function accountJson({ id, username, email, two_factor_enabled, created_at }: Account): object {
  return { id, username, email, twoFactorEnabled: two_factor_enabled, createdAt: created_at };
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
