import { runTransaction } from '@latchkey/audit/transaction';
import { DomainError } from '@latchkey/kit/errors/errors';
import { toId } from '@latchkey/kit/validation/id';
import type { ExchangeTokenRequest } from '@latchkey/proto/latchkey/identity/v1/trusted_issuer_pb';
import { lockAccount } from '../account/account.store.ts';
import { insertApiKey } from '../api-key/api-key.store.ts';
import { createKey } from '../api-key/api-key.ts';
import { recordAction } from '../audit/actions.ts';
import type { ActingContext } from '../context.ts';
import { errors } from '../proto-errors.ts';
import { insertUsedToken } from '../used-token/used-token.store.ts';
import { readUnverified, type VerifiedToken, verifyToken } from './subject-token.ts';
import * as store from './trusted-issuer.store.ts';

const CANDIDATES_MAX = 10;
/** Keys of trusted issuers of an account that have not expired. It also bounds the list of keys. */
const EXCHANGED_KEYS_MAX = 100;
const KEYS_LIMIT = { policy: 'exchanged-keys', limit: EXCHANGED_KEYS_MAX, windowMs: 0, retryMs: 60_000 };

/**
 * Makes a management key for a token of a trusted issuer. Each token is accepted once.
 * @throws the errors of `ExchangeToken`
 */
export async function exchangeToken(ctx: ActingContext, request: ExchangeTokenRequest) {
  const { trusted, verified } = await findTrusted(ctx, request);
  const { id: trustedIssuerId, account_id: accountId, name, issuer, all_applications, lifetime_seconds } = trusted;
  const scopes = narrowScopes(trusted.scopes, request.scopes);
  // Applications may have been deleted since.
  const application_ids = all_applications ? [] : [...(await ctx.apps.findOwned(accountId, trusted.application_ids))];
  const { subject, tokenHash } = verified;
  const accessToken = await runTransaction(ctx.db, async (tx) => {
    const now = ctx.clock();
    await lockAccount(tx, accountId);
    if (!(await store.hasTrustedIssuer(tx, trustedIssuerId))) throw errors.token_not_accepted();
    if (!(await insertUsedToken(tx, tokenHash, verified.expiresAt))) throw errors.token_used();
    if ((await store.countExchangedKeys(tx, accountId, now)) >= EXCHANGED_KEYS_MAX)
      throw errors.exchanged_keys_limit_reached(KEYS_LIMIT);
    const expiresAt = new Date(now.getTime() + lifetime_seconds * 1_000);
    const { text, columns } = createKey(ctx, accountId, now);
    const apiKey = await insertApiKey(tx, {
      ...{ name, scopes, all_applications, application_ids, expires_at: expiresAt },
      ...{ trusted_issuer_id: trustedIssuerId, issuer, subject },
      ...columns,
    });
    const rights = { scopes, allApplications: all_applications, applicationIds: application_ids };
    const changes = { name, issuer, subject, trustedIssuerId, ...rights, expiresAt: expiresAt.toISOString() };
    await recordAction(ctx, tx, { accountId, apiKeyId: apiKey.id }, 'api_key.exchanged', changes);
    return text;
  });
  return { accessToken, expiresInSeconds: lifetime_seconds, scopes };
}

function narrowScopes(trusted: readonly string[], requested: readonly string[]): string[] {
  if (!requested.every((scope) => trusted.includes(scope))) throw errors.token_scope_invalid();
  return trusted.filter((scope) => requested.length === 0 || requested.includes(scope));
}

/** The one trusted issuer that accepts a token. Only issuers of its claims are called. */
async function findTrusted(ctx: ActingContext, { subjectToken: token, audience: target }: ExchangeTokenRequest) {
  const unverified = readUnverified(token);
  const candidates = await store.selectCandidates(ctx.db, unverified, target, CANDIDATES_MAX + 1);
  if (candidates.length > CANDIDATES_MAX) throw errors.token_target_ambiguous();
  const accepting: Array<{ readonly trusted: store.TrustedIssuerRow; readonly verified: VerifiedToken }> = [];
  const failures: DomainError[] = [];
  for (const trusted of candidates) {
    const verified = await verifyToken(ctx, token, trusted);
    if (verified instanceof DomainError) failures.push(verified);
    else accepting.push({ trusted, verified });
  }
  const [found, ...others] = accepting;
  if (others.length > 0) throw errors.token_target_ambiguous();
  if (found) return found;
  // More than that the token is of no trusted issuer.
  const failure = failures.find(({ reason }) => reason !== 'token_not_accepted');
  if (failure) throw failure;
  if (target === undefined || unverified.audiences.includes(target)) throw errors.token_not_accepted();
  // The id of a trusted issuer is a target too, also of one that does not accept the token.
  const isId = await store.hasTrustedIssuer(ctx.db, toId(target));
  throw isId ? errors.token_not_accepted() : errors.token_target_invalid();
}
