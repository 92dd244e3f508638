import { runTransaction } from '@latchkey/audit/transaction';
import { DomainError } from '@latchkey/kit/errors/errors';
import { parseId } from '@latchkey/kit/validation/id';
import type { ExchangeTokenRequest } from '@latchkey/proto/latchkey/identity/v1/trusted_issuer_pb';
import { lockAccount } from '../account/account.store.ts';
import { insertApiKey } from '../api-key/api-key.store.ts';
import { toKeyColumns } from '../api-key/api-key.ts';
import { createApiKeyText } from '../api-key/api-key-text.ts';
import { recordAction } from '../audit/actions.ts';
import type { ActingContext, IdentityContext } from '../context.ts';
import { errors } from '../proto-errors.ts';
import { insertUsedToken } from '../used-token/used-token.store.ts';
import { readUnverified, type UnverifiedToken, type VerifiedToken, verifyToken } from './subject-token.ts';
import * as store from './trusted-issuer.store.ts';

/** Trusted issuers that a token is verified against. */
const CANDIDATES_MAX = 10;
/** Keys of trusted issuers of an account that have not expired. It also bounds the list of keys. */
const EXCHANGED_KEYS_MAX = 100;

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
  const { text, publicId } = createApiKeyText();
  const { subject, tokenHash } = verified;
  await runTransaction(ctx.db, async (tx) => {
    const now = ctx.clock();
    const isTrusted = (await lockAccount(tx, accountId)) && (await store.hasTrustedIssuer(tx, trusted));
    if (!isTrusted) throw errors.token_not_accepted();
    if (!(await insertUsedToken(tx, tokenHash, verified.expiresAt))) throw errors.token_used();
    if ((await store.countExchangedKeys(tx, accountId, now)) >= EXCHANGED_KEYS_MAX) throw keysLimitReached();
    const expiresAt = new Date(now.getTime() + lifetime_seconds * 1_000);
    const apiKey = await insertApiKey(tx, {
      ...{ name, scopes, all_applications, application_ids, expires_at: expiresAt },
      ...{ trusted_issuer_id: trustedIssuerId, issuer, subject },
      ...toKeyColumns(ctx, { accountId, text, publicId, now }),
    });
    const rights = { scopes, allApplications: all_applications, applicationIds: application_ids };
    const changes = { name, issuer, subject, trustedIssuerId, ...rights, expiresAt: expiresAt.toISOString() };
    await recordAction(ctx, tx, { accountId, apiKeyId: apiKey.id }, 'api_key.exchanged', changes);
  });
  return { accessToken: text, expiresInSeconds: lifetime_seconds, scopes };
}

/** The scopes of a key: those that were requested, else all of the trusted issuer. */
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
  let failure: DomainError | undefined;
  for (const trusted of candidates) {
    try {
      const verified = await verifyToken(ctx, token, trusted);
      if (verified) accepting.push({ trusted, verified });
    } catch (err) {
      if (!(err instanceof DomainError)) throw err;
      failure ??= err;
    }
  }
  const [found, ...others] = accepting;
  if (others.length > 0) throw errors.token_target_ambiguous();
  if (found) return found;
  if (failure) throw failure;
  throw (await isTarget(ctx, target, unverified)) ? errors.token_not_accepted() : errors.token_target_invalid();
}

/**
 * True for an audience of the token, and for the id of a trusted issuer, also of one that does not
 * accept it.
 */
async function isTarget({ db }: IdentityContext, target: string | undefined, { audiences }: UnverifiedToken) {
  if (target === undefined || audiences.includes(target)) return true;
  const id = parseId(target);
  return id !== undefined && store.hasTrustedIssuerId(db, id);
}

function keysLimitReached(): DomainError {
  const retryMs = 60_000;
  return errors.exchanged_keys_limit_reached({ policy: 'exchanged-keys', limit: EXCHANGED_KEYS_MAX, windowMs: 0, retryMs });
}
