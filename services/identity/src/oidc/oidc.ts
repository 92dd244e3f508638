import { hash } from 'node:crypto';
import { runTransaction } from '@latchkey/audit/transaction';
import { constantTimeEqual } from '@latchkey/kit/crypto/secrets';
import { DomainError } from '@latchkey/kit/errors/errors';
import { parseId } from '@latchkey/kit/validation/id';
import type { CompleteOidcRequest, FinishOidcRequest, StartOidcRequest } from '@latchkey/proto/latchkey/identity/v1/oidc_pb';
import { randomNonce, randomPKCECodeVerifier, randomState } from 'openid-client';
import { type Account, lockAccount } from '../account/account.store.ts';
import { getAccount, type SignedIn } from '../account/account.ts';
import { openSessionFor, type VerifiedSignIn } from '../account/sign-in.ts';
import { runAsVerifiedOwner } from '../account/verify-owner.ts';
import { asSession, recordAction } from '../audit/actions.ts';
import { authenticateSession } from '../authentication/authentication.ts';
import type { ActingContext, IdentityContext } from '../context.ts';
import type { Db } from '../db/schema.ts';
import { errors } from '../proto-errors.ts';
import { lockSession } from '../session/session.store.ts';
import type { SessionClient } from '../session/session.ts';
import { insertUsedToken } from '../used-token/used-token.store.ts';
import { type Person, toPerson } from './claims.ts';
import { createLinkedAccount } from './oidc-account.ts';
import { insertLinkOnce, selectLinkedAccount, updatePictureUrl } from './oidc-link.store.ts';
import { type PendingSignIn, type Sealed, seal, sealedUntil, sealPending, unseal } from './sealed-cookie.ts';

export type FlowOutcome =
  | ({ readonly case: 'signedIn' } & SignedIn)
  | { readonly case: 'linked'; readonly account: Account; readonly csrfToken: string }
  | { readonly case: 'pending'; readonly pending: Sealed };

export async function startFlow(ctx: ActingContext, request: StartOidcRequest) {
  const { issuer: name, linkAccountId } = request;
  if (!URL.canParse(request.redirectUri)) throw errors.oidc_request_invalid();
  const issuer = ctx.oidcIssuers.get(name);
  if (!issuer) throw errors.oidc_issuer_not_found();
  if (linkAccountId !== undefined && !parseId(linkAccountId)) throw errors.account_not_found();
  const { href } = new URL(request.redirectUri);
  // Each of several issuers gets its own redirect URI, against mix-up (RFC 9700, 4.4.2.2): a
  // response at an issuer's URI is that issuer's, also where it does not identify itself.
  const redirectUri = ctx.oidcIssuers.size === 1 ? href : `${href}/${name}`;
  const secrets = { state: randomState(), nonce: randomNonce(), verifier: randomPKCECodeVerifier() };
  const flow = { issuer: name, redirectUri, ...secrets };
  const authorizationUrl = await issuer.authorizationUrl(flow);
  // After the issuer responded, so that no code is used up in vain.
  const proof = linkAccountId && { ...request, accountId: linkAccountId };
  const link =
    proof &&
    (await runAsVerifiedOwner(ctx, proof, async (_tx, { id, sign_in_generation: generation }) => {
      return { accountId: id, generation };
    }));
  return { authorizationUrl, flow: seal(ctx.oidcKey, 'flow', { ...flow, ...(link && { link }) }, ctx.clock()) };
}

/**
 * Finishes a flow. Nothing changes before all is verified: this browser started it and came back to
 * its issuer's redirect URI, it is neither expired nor used, a link's session belongs to its
 * account, and the issuer's response is valid.
 */
export async function finishFlow(ctx: ActingContext, request: FinishOidcRequest): Promise<FlowOutcome> {
  const { sessionToken, userAgent } = request;
  const flow = unseal(ctx.oidcKey, 'flow', request.flow, ctx.clock());
  const issuer = flow && ctx.oidcIssuers.get(flow.issuer);
  if (!flow || !issuer || !constantTimeEqual(flow.state, request.state ?? '')) throw errors.oidc_flow_invalid();
  if (flow.redirectUri !== request.redirectUri) throw errors.oidc_flow_invalid();
  const session = flow.link && (await authenticateSession(ctx, sessionToken)).principal;
  if (session?.accountId !== flow.link?.accountId) throw errors.session_invalid();
  const person = toPerson(...(await issuer.redeem(flow, request, () => useUp(ctx, ctx.db, flow.state))));
  if (!person) throw errors.oidc_refused();
  if (!flow.link || !session) return signInAs(ctx, person, { previousSessionToken: sessionToken, userAgent });
  await link(ctx, person, session, flow.link.generation);
  return { case: 'linked', account: await getAccount(ctx, session.accountId), csrfToken: session.csrfToken };
}

export async function completeSignIn(ctx: ActingContext, request: CompleteOidcRequest): Promise<SignedIn> {
  const { code, previousSessionToken, userAgent } = request;
  const pending = unseal(ctx.oidcKey, 'pending', request.pending, ctx.clock());
  if (!pending) throw errors.oidc_flow_invalid();
  return open(ctx, pending, { code, previousSessionToken, userAgent, useUp: (tx) => useUp(ctx, tx, pending.id) });
}

async function useUp(ctx: IdentityContext, db: Db, id: string): Promise<void> {
  const isFirst = await insertUsedToken(db, hash('sha256', id, 'buffer'), sealedUntil(ctx.clock()));
  if (!isFirst) throw errors.oidc_flow_invalid();
}

async function signInAs(ctx: ActingContext, person: Person, client: SessionClient): Promise<FlowOutcome> {
  const known = await selectLinkedAccount(ctx.db, person);
  if (!known) {
    // A page that sent a signed-in browser to the issuer must not move it to another account.
    const session = await authenticateSession(ctx, client.previousSessionToken).catch(undefinedFor('session_invalid'));
    if (session) throw errors.oidc_signed_in_already();
    const created = await createLinkedAccount(ctx, person, client);
    if (created) return { case: 'signedIn', ...created };
  }
  // Of two concurrent first sign-ins, the second finds the account of the first.
  const linked = known ?? (await selectLinkedAccount(ctx.db, person));
  if (!linked) throw errors.account_exists();
  const factor = { ...linked, issuer: person.issuer, pictureUrl: person.pictureUrl };
  const opened = await open(ctx, factor, client).catch(undefinedFor('two_factor_required'));
  if (opened) return { case: 'signedIn', ...opened };
  return { case: 'pending', pending: sealPending(ctx.oidcKey, { id: randomState(), ...factor }, ctx.clock()) };
}

function undefinedFor(reason: string): (err: unknown) => undefined {
  return (err) => {
    if (!(err instanceof DomainError) || err.reason !== reason) throw err;
  };
}

async function open(
  ctx: ActingContext,
  { accountId, generation, issuer, pictureUrl }: Omit<PendingSignIn, 'id'>,
  more: SessionClient & Pick<VerifiedSignIn, 'code' | 'useUp'>,
): Promise<SignedIn> {
  const session = await openSessionFor(ctx, { accountId, generation, issuer, ...more });
  await updatePictureUrl(ctx.db, accountId, pictureUrl);
  return { account: await getAccount(ctx, accountId), session };
}

/** Links a person, unless the session ended or the epoch of sign-ins changed meanwhile. */
async function link(
  ctx: ActingContext,
  { issuer, subject, pictureUrl }: Person,
  { accountId, credentialId: sessionId }: { readonly accountId: string; readonly credentialId: string },
  generation: number,
): Promise<void> {
  await runTransaction(ctx.db, async (tx) => {
    const account = await lockAccount(tx, accountId);
    if (!account) throw errors.account_not_found();
    if (!(await lockSession(tx, { account_id: accountId, id: sessionId }))) throw errors.session_invalid();
    if (account.sign_in_generation !== generation) throw errors.oidc_flow_invalid();
    const isNew = await insertLinkOnce(tx, { issuer, subject, account_id: accountId, created_at: ctx.clock() });
    const linked = await selectLinkedAccount(tx, { issuer, subject });
    if (linked?.accountId !== accountId) throw errors.oidc_subject_linked();
    if (isNew) await recordAction(asSession(ctx, sessionId), tx, { accountId }, 'account.oidc_linked', { issuer, subject });
    await updatePictureUrl(tx, accountId, pictureUrl);
  });
}
