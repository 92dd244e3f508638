import { parseId } from '@latchkey/kit/id';
import type { Transaction } from 'kysely';
import { lockAccount } from '../account/account.store.ts';
import type { IdentityContext } from '../context.ts';
import type { IdentityDatabase } from '../db/schema.ts';
import { errors } from '../errors.ts';
import { type ApiKeyRow, countActiveApiKeys } from './api-key.store.ts';

/** Whether a key is neither revoked nor expired. */
export function isActive(key: Pick<ApiKeyRow, 'revoked_at' | 'expires_at'>, now: Date): boolean {
  return !key.revoked_at && (!key.expires_at || key.expires_at > now);
}

/** How many active keys an account has, and may have. */
export async function getApiKeyUsage(
  ctx: IdentityContext,
  accountText: string,
): Promise<{ readonly active: number; readonly activeMax: number }> {
  const accountId = parseId(accountText);
  const active = accountId ? await countActiveApiKeys(ctx.db, accountId, ctx.clock()) : 0;
  return { active, activeMax: ctx.activeApiKeysMax };
}

/**
 * Makes room for one more active key (decisions 9). It holds the account until the transaction ends, so that keys made at once count one
 * another.
 *
 * @throws `account_not_found`, `active_api_keys_limit_exceeded`
 */
export async function reserveActiveApiKey(
  ctx: IdentityContext,
  tx: Transaction<IdentityDatabase>,
  accountId: string,
  now: Date,
): Promise<void> {
  if (!(await lockAccount(tx, accountId))) throw errors.account_not_found();
  const active = await countActiveApiKeys(tx, accountId, now);
  if (active >= ctx.activeApiKeysMax) throw errors.active_api_keys_limit_exceeded();
}
