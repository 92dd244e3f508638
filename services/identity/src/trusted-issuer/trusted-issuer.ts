import { runTransaction } from '@latchkey/audit/transaction';
import { TRUSTED_ISSUERS_MAX } from '@latchkey/contract/trusted-issuer';
import { newId, toId } from '@latchkey/kit/validation/id';
import type {
  CreateTrustedIssuerRequest,
  DeleteTrustedIssuerRequest,
} from '@latchkey/proto/latchkey/identity/v1/trusted_issuer_pb';
import { lockAccount } from '../account/account.store.ts';
import { checkOwned } from '../api-key/api-key.ts';
import { type ColumnChanges, parseChange } from '../api-key/api-key-rules.ts';
import { recordAction } from '../audit/actions.ts';
import { recordFailures } from '../audit/credential-failures.ts';
import { apiKeyEpoch } from '../authentication/principal-epoch.ts';
import type { ActingContext, IdentityContext } from '../context.ts';
import type { Db } from '../db/schema.ts';
import { errors } from '../proto-errors.ts';
import { attempt, takeSecondFactor } from '../two-factor/take-code.ts';
import { fromClaimTexts } from './claim-texts.ts';
import * as store from './trusted-issuer.store.ts';
import { parseTrustedIssuer } from './trusted-issuer-rules.ts';

export type TrustedIssuer = store.TrustedIssuerRow;

export async function listTrustedIssuers(ctx: IdentityContext, accountText: string): Promise<TrustedIssuer[]> {
  return store.selectTrustedIssuers(ctx.db, toId(accountText));
}

/**
 * Adds a trusted issuer, with a code where the account has a second factor: nothing that is
 * rejected uses it up, and a repeated call needs no other.
 * @throws `api_key_settings_invalid`, `trusted_issuer_settings_invalid`, `application_not_found`,
 *   `trusted_issuers_limit_exceeded`, and what {@link takeSecondFactor} returns
 */
export async function createTrustedIssuer(ctx: ActingContext, request: CreateTrustedIssuerRequest) {
  const { name, scopes, allApplications, applicationIds } = request;
  const now = ctx.clock();
  const rights = parseChange({ name, scopes, allApplications, applicationIds }, now) as Required<
    Omit<ColumnChanges, 'expires_at'>
  >;
  const settings = parseTrustedIssuer(request, ctx.internalHosts);
  const accountId = toId(request.accountId);
  await checkOwned(ctx, accountId, rights.application_ids);
  const create = async (tx: Db) => {
    if (!(await lockAccount(tx, accountId))) throw errors.account_not_found();
    if ((await store.countTrustedIssuers(tx, accountId)) >= TRUSTED_ISSUERS_MAX) throw errors.trusted_issuers_limit_exceeded();
    const error = await takeSecondFactor(ctx, tx, accountId, request.code);
    if (error) return error;
    const row = { id: newId(), account_id: accountId, ...rights, ...settings, created_at: now };
    const created = await store.insertTrustedIssuer(tx, row);
    const { id: trustedIssuerId, issuer, audience } = created;
    const claims = Object.entries(fromClaimTexts(created.claims)).map(([claim, value]) => `${claim}=${value}`);
    const keys = { scopes, allApplications, applicationIds, lifetimeSeconds: created.lifetime_seconds };
    const changes = { trustedIssuerId, name: created.name, issuer, audience, claims, ...keys };
    await recordAction(ctx, tx, { accountId }, 'trusted_issuer.created', changes);
    return created;
  };
  return recordFailures(ctx, { accountId, action: 'account.proof_failed' }, () => attempt(ctx, create));
}

/**
 * Removes a trusted issuer and revokes its keys, from the next request on.
 * @throws `trusted_issuer_not_found`
 */
export async function deleteTrustedIssuer(ctx: ActingContext, request: DeleteTrustedIssuerRequest): Promise<void> {
  const [accountId, id] = [toId(request.accountId), toId(request.trustedIssuerId)];
  const revoked = await runTransaction(ctx.db, async (tx) => {
    // Exchanges lock the account too: no key is made after its trusted issuer is gone.
    await lockAccount(tx, accountId);
    const deleted = await store.deleteTrustedIssuerRow(tx, accountId, id);
    if (!deleted) throw errors.trusted_issuer_not_found();
    const keys = await store.revokeExchangedKeys(tx, accountId, id, ctx.clock());
    const changes = { trustedIssuerId: id, name: deleted.name, issuer: deleted.issuer, revokedKeys: keys.length };
    await recordAction(ctx, tx, { accountId }, 'trusted_issuer.deleted', changes);
    return keys.map(({ public_id }) => public_id);
  });
  await ctx.epochs.end(...revoked.map(apiKeyEpoch));
}
