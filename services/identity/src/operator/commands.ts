import type { ParseArgsConfig } from 'node:util';
import { parseId } from '@latchkey/kit/validation/id';
import { customRandom } from 'nanoid';
import { type Account, createAccount, findAccount, listAccounts, resetPassword } from '../account/account.ts';
import { isEmail, isPassword, isUsername } from '../account/account-rules.ts';
import { findApiKey, revokeApiKey } from '../api-key/api-key.ts';
import type { ActingContext } from '../audit/audit.ts';
import { endAllSessions } from '../session/session.ts';
import { turnTwoFactorOff } from '../two-factor/two-factor.ts';

export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly reason: string;

  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}

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
  /** What is wrong with the values of the options. */
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
      const rows = accounts.map(({ id, username, email, twoFactorEnabled, createdAt }) => {
        const twoFactor = twoFactorEnabled ? 'two-factor' : '-'.padEnd(10);
        return [id, username.padEnd(32), twoFactor, createdAt.toISOString(), email].join('  ');
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
        throw new CommandError('username_invalid', 'The username must have 3 to 32 characters: A to Z, a to z, 0 to 9, _ and -.');
      }
      if (!isEmail(email)) throw new CommandError('email_invalid', 'The email must be an address of at most 254 characters.');
      const { password, shown } = await chooseNewPassword(call);
      const account = await createAccount(call.ctx, { username, email, password });
      return result(account, `Created the account ${nameOf(account)}, id ${account.id}.`, {}, shown);
    },
  },
  'reset-password': {
    usage: 'ACCOUNT [--generate] [--keep-links]',
    summary: 'set another password, end all sessions and remove the links to OpenID Connect issuers',
    argCount: 1,
    options: { generate: { type: 'boolean' }, 'keep-links': { type: 'boolean' } },
    async run(call) {
      const account = await requireAccount(call);
      const { password, shown } = await chooseNewPassword(call);
      const keepLinks = call.values['keep-links'] === true;
      const { endedSessions, removedLinks } = await resetPassword(call.ctx, account.id, { password, keepLinks });
      const links = keepLinks ? 'kept its links' : `removed ${count(removedLinks, 'link')}`;
      const text = `Set another password for ${nameOf(account)}, ended ${count(endedSessions, 'session')} and ${links}.`;
      return result(account, text, { endedSessions, removedLinks }, shown);
    },
  },
  'two-factor-off': {
    usage: 'ACCOUNT',
    summary: 'turn two-factor authentication off, which ends all sessions',
    argCount: 1,
    async run(call) {
      const account = await requireAccount(call);
      const ended = await turnTwoFactorOff(call.ctx, account.id);
      const whose = `Two-factor authentication of ${nameOf(account)}`;
      const text = ended === undefined ? `${whose} was off already.` : `${whose} is off now. Ended ${count(ended, 'session')}.`;
      return result({ ...account, twoFactorEnabled: false }, text, { changed: ended !== undefined, endedSessions: ended ?? 0 });
    },
  },
  'sign-out': {
    usage: 'ACCOUNT',
    summary: 'end all sessions',
    argCount: 1,
    async run(call) {
      const account = await requireAccount(call);
      const endedSessions = await endAllSessions(call.ctx, account.id);
      return result(account, `Ended ${count(endedSessions, 'session')} of ${nameOf(account)}.`, { endedSessions });
    },
  },
  'revoke-key': {
    usage: 'ACCOUNT KEY',
    summary: 'revoke a management key, named by its public id or its id',
    argCount: 2,
    async run(call) {
      const account = await requireAccount(call);
      const [, name = ''] = call.args;
      const found = await findApiKey(call.ctx, account.id, name);
      if (!found) throw new CommandError('api_key_not_found', `${account.username} has no key ${JSON.stringify(name)}.`);
      const key = await revokeApiKey(call.ctx, { accountId: account.id, id: found.id });
      const what = `The key ${key.public_id} (${key.name}) of ${nameOf(account)}`;
      const text = found.revoked_at
        ? `${what} was revoked already, at ${found.revoked_at.toISOString()}.`
        : `${what} is revoked now.`;
      return result(account, text, {
        key: { id: key.id, publicId: key.public_id, revokedAt: key.revoked_at },
        changed: !found.revoked_at,
      });
    },
  },
};

/** Without letters and digits that look alike. */
const PASSWORD_ALPHABET = '23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
/** 116 random bits. */
const PASSWORD_LENGTH = 20;

/** Generates or reads a password. Only a generated one is shown. */
async function chooseNewPassword({ ctx, values, readPassword }: CommandCall): Promise<{ password: string; shown?: string }> {
  if (values.generate === true) {
    const password = customRandom(PASSWORD_ALPHABET, PASSWORD_LENGTH, ctx.random)();
    return { password, shown: password };
  }
  const password = await readPassword();
  if (isPassword(password)) return { password };
  throw new CommandError('password_invalid', 'The password must have 10 to 128 characters, and no NUL.');
}

async function requireAccount({ ctx, args: [name = ''] }: CommandCall): Promise<Account> {
  const account = await findAccount(ctx, name);
  if (!account) throw new CommandError('account_not_found', `There is no account ${JSON.stringify(name)}.`);
  return account;
}

function result(account: Account, text: string, more: object, password?: string): CommandResult {
  const json = { account: accountJson(account), ...more };
  return password === undefined ? { text, json } : { text: `${text}\nPassword: ${password}`, json: { ...json, password } };
}

function nameOf({ username, email }: Account): string {
  return `${username} (${email})`;
}

function accountJson({ id, username, email, twoFactorEnabled, createdAt }: Account): object {
  return { id, username, email, twoFactorEnabled, createdAt };
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
