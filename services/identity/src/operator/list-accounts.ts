import { parseId } from '@latchkey/kit/id';
import { selectAccounts } from '../account/account.store.ts';
import { toAccount } from '../account/account.ts';
import type { Command } from './command.ts';
import { accountJson, countOf, table } from './describe.ts';

const LIMIT_DEFAULT = 50;
const LIMIT_MAX = 1_000;

/** A page of all accounts. */
export const listAccountsCommand: Command = {
  usage: '[--limit N] [--after ID]',
  summary: `show ${LIMIT_DEFAULT} accounts, or N, from the first or after one`,
  positionals: [],
  options: {
    limit: { type: 'string', fault: (text) => (isLimit(text) ? undefined : `must be a whole number from 1 to ${LIMIT_MAX}`) },
    after: { type: 'string', fault: (text) => (parseId(text) ? undefined : 'must be the id of an account') },
  },
  async run({ ctx, values }) {
    const limit = values.limit === undefined ? LIMIT_DEFAULT : Number(values.limit);
    const after = values.after === undefined ? undefined : parseId(String(values.after));
    const rows = await selectAccounts(ctx.db, { after, limit: limit + 1 });
    const accounts = rows.slice(0, limit).map(toAccount);
    const next = rows.length > limit ? (accounts.at(-1)?.id ?? null) : null;
    const cells = accounts.map(({ id, username, email, twoFactorEnabled, createdAt }) => {
      return [id, username, email, twoFactorEnabled ? 'on' : 'off', createdAt.toISOString()];
    });
    const more = next === null ? '' : ` There are more: --after ${next}`;
    return {
      text: `${table(['ID', 'USERNAME', 'EMAIL', 'TWO-FACTOR', 'CREATED'], cells)}\n${countOf(accounts.length, 'account')}.${more}`,
      json: { accounts: accounts.map(accountJson), next },
    };
  },
};

function isLimit(text: string): boolean {
  return /^\d{1,4}$/.test(text) && Number(text) >= 1 && Number(text) <= LIMIT_MAX;
}
