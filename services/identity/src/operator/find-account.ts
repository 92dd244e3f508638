import { parseId } from '@latchkey/kit/id';
import { selectAccount, selectAccountByEmail, selectAccountByUsername } from '../account/account.store.ts';
import { type Account, toAccount } from '../account/account.ts';
import { isEmail, isUsername } from '../account/account-rules.ts';
import type { IdentityContext } from '../context.ts';
import { Refused } from './outcome.ts';

/**
 * The account that an email, a username or an id names, of which no text can be two.
 *
 * @throws {Refused} where there is none
 */
export async function findAccount(ctx: IdentityContext, name: string): Promise<Account> {
  const row = await selectByName(ctx, name);
  if (!row) throw new Refused('account_not_found', `There is no account ${JSON.stringify(name)}.`);
  return toAccount(row);
}

async function selectByName({ db }: IdentityContext, name: string) {
  if (isEmail(name)) return selectAccountByEmail(db, name);
  if (isUsername(name)) return selectAccountByUsername(db, name);
  const id = parseId(name);
  return id === undefined ? undefined : selectAccount(db, id);
}
