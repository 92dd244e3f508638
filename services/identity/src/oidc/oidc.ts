import { DomainError } from '@latchkey/kit/errors';
import { parseId } from '@latchkey/kit/id';
import { constantTimeEqual } from '@latchkey/kit/secrets';
import type { Kysely } from 'kysely';
import { randomNonce, randomPKCECodeVerifier, randomState } from 'openid-client';
import { lockAccount, selectSignInBasisShared } from '../account/account.store.ts';
import { type Account, getAccount, type SignedIn } from '../account/account.ts';
import { openSessionOf, type SessionRequest } from '../account/sign-in.ts';
import { type ActingContext, asSession, recordAccount } from '../audit/audit.ts';
import { authenticateSession, type SessionPrincipal } from '../authentication/authentication.ts';
import type { IdentityContext } from '../context.ts';
import type { IdentityDatabase } from '../db/schema.ts';
import { errors } from '../errors.ts';
import { holdSession } from '../session/session.store.ts';
import { type Person, toPerson } from './claims.ts';
import type { Issuer, IssuerAnswer } from './issuer.ts';
import { createAccountOf } from './new-account.ts';
import { deleteUsedFlows, insertLinkOnce, insertUsedFlow, selectLinkedAccount, updatePictureUrl } from './oidc-link.store.ts';
import { type OwnerProof, proveOwner } from './owner-proof.ts';
import { type Flow, flowEnd, type PendingSignIn, type Sealed, seal, sealPending, unseal } from './sealed.ts';

/** Whose account a person at an issuer has shown the first factor of. */
type FirstFactor = Omit<PendingSignIn, 'id'>;

/** What a browser is to do. */
export interface StartedFlow {
  readonly authorizationUrl: string;
  readonly flow: Sealed;
}

/** What somebody wants to begin. */
export interface FlowRequest extends OwnerProof {
  /** Name of the issuer. */
  readonly issuer: string;
  /** Where issuers send browsers back to. */
  readonly redirectUri: string;
  /** Undefined means a sign-in. */
  readonly linkAccountId: string | undefined;
}

/** What a browser came back with, and where. */
export interface FlowEnd {
  readonly flow: string;
  readonly redirectUri: string;
  readonly answer: IssuerAnswer;
  /** Token that the client has in its session cookie; empty for none. */
  readonly sessionToken: string;
}

/** How a flow ended. */
export type FlowOutcome =
  | ({ readonly case: 'signedIn' } & SignedIn)
  | { readonly case: 'linked'; readonly account: Account; readonly csrfToken: string }
  | { readonly case: 'pending'; readonly pending: Sealed };

/**
 * Begins a sign-in at an issuer, or the linking of an account to whoever signs in there. A link outlives the session that it is made with, so its owner
 * shows more than that.
 *
 * @throws `oidc_request_invalid`, `oidc_issuer_not_found`, `oidc_issuer_unavailable`; of a link, what {@link proveOwner} throws
 */
export async function startFlow(
  ctx: ActingContext,
  { issuer: name, redirectUri, linkAccountId, ...proof }: FlowRequest,
): Promise<StartedFlow> {
  if (!URL.canParse(redirectUri)) throw errors.oidc_request_invalid();
  const issuer = issuerOf(ctx, name);
  if (!issuer) throw errors.oidc_issuer_not_found();
  if (linkAccountId !== undefined && !parseId(linkAccountId)) throw errors.account_not_found();
  const flow: Flow = {
    issuer: name,
    redirectUri: redirectUriOf(ctx, name, redirectUri),
    state: randomState(),
    nonce: randomNonce(),
    verifier: randomPKCECodeVerifier(),
  };
  const authorizationUrl = await issuer.authorizationUrl(flow);
  // Only now, so that no code is used up in vain.
  const link = linkAccountId && { accountId: linkAccountId, generation: await proveOwner(ctx, linkAccountId, proof) };
  return { authorizationUrl, flow: seal(ctx.oidcKey, 'flow', { ...flow, ...(link && { link }) }, ctx.clock()) };
}

/**
 * Where an issuer sends browsers back to. Of several, each has a place of its own: one that is hostile could send its visitors on to another issuer, and
 * what that answers would be taken for an answer of the first (RFC 9700, 4.4.2.2). An issuer sends nobody but to places that it was told of, and says so
 * again when the code is redeemed, so an answer that comes to the place of an issuer is that issuer's, also where it does not say who it is.
 */
function redirectUriOf({ oidcIssuers }: IdentityContext, name: string, base: string): string {
  const { href } = new URL(base);
  return oidcIssuers.size === 1 ? href : `${href}/${name}`;
}

/**
 * Ends a flow. Nothing changes before everything is proven: that this browser began it and came back to the place of its issuer, that it is not over and
 * not used, that the session of a link is its account's, and that the issuer's answer is to be believed.
 *
 * @throws all that `FinishOidc` names
 */
export async function finishFlow(ctx: ActingContext, end: FlowEnd): Promise<FlowOutcome> {
  const { answer, sessionToken } = end;
  const flow = unseal(ctx.oidcKey, 'flow', end.flow, ctx.clock());
  const issuer = flow && issuerOf(ctx, flow.issuer);
  if (!flow || !issuer || !constantTimeEqual(flow.state, answer.state ?? '')) throw errors.oidc_flow_invalid();
  if (flow.redirectUri !== end.redirectUri) throw errors.oidc_flow_invalid();
  const session = flow.link && (await checkSession(ctx, sessionToken, flow.link.accountId));
  const person = toPerson(...(await issuer.redeem(flow, answer, () => useUp(ctx, ctx.db, flow.state))));
  if (!person) throw errors.oidc_refused();
  if (!flow.link || !session) return signInAs(ctx, person, sessionToken);
  await link(ctx, person, session, flow.link.generation);
  return { case: 'linked', account: await getAccount(ctx, session.accountId), csrfToken: session.csrfToken };
}

/**
 * Ends a sign-in to an account with a second factor. It is good for one session: with another code it is over all the same.
 *
 * @throws `oidc_flow_invalid`, `two_factor_code_invalid`, `two_factor_attempts_reached`
 */
export async function completeSignIn(
  ctx: ActingContext,
  { pending: text, code, previousSessionToken }: { pending: string; code: string; previousSessionToken: string },
): Promise<SignedIn> {
  const pending = unseal(ctx.oidcKey, 'pending', text, ctx.clock());
  if (!pending) throw errors.oidc_flow_invalid();
  return open(ctx, pending, { code, previousSessionToken, useUp: (tx) => useUp(ctx, tx, pending.id) });
}

function issuerOf(ctx: IdentityContext, name: string): Issuer | undefined {
  return ctx.oidcIssuers.get(name);
}

/** A session, which has to be of that account. */
async function checkSession(ctx: IdentityContext, token: string, accountId: string): Promise<SessionPrincipal> {
  const { principal } = await authenticateSession(ctx, token);
  if (principal.accountId !== accountId) throw errors.session_invalid();
  return principal;
}

async function isSignedIn(ctx: IdentityContext, token: string): Promise<boolean> {
  try {
    await authenticateSession(ctx, token);
    return true;
  } catch (err) {
    if (err instanceof DomainError && err.reason === 'session_invalid') return false;
    throw err;
  }
}

/** Makes a flow, by its state, or a sign-in that waited for a code good for nothing any more, whatever is shown with it. */
async function useUp(ctx: IdentityContext, db: Kysely<IdentityDatabase>, id: string): Promise<void> {
  const now = ctx.clock();
  if (!(await insertUsedFlow(db, id, flowEnd(now)))) throw errors.oidc_flow_invalid();
  await deleteUsedFlows(db, now);
}

async function signInAs(ctx: ActingContext, person: Person, previousSessionToken: string): Promise<FlowOutcome> {
  const known = await selectLinkedAccount(ctx.db, person);
  // Whoever is signed in has an account, and a page that sent them to the issuer must not leave them in another one, which they might take for theirs.
  if (!known && (await isSignedIn(ctx, previousSessionToken))) throw errors.oidc_signed_in_already();
  const created = known ? undefined : await createAccountOf(ctx, person, previousSessionToken);
  if (created) return { case: 'signedIn', ...created };
  // Of two first sign-ins at once, the second finds the account of the first.
  const linked = known ?? (await selectLinkedAccount(ctx.db, person));
  if (!linked) throw errors.account_exists();
  return openLinked(ctx, { ...linked, issuer: person.issuer, pictureUrl: person.pictureUrl }, previousSessionToken);
}

async function openLinked(ctx: ActingContext, linked: FirstFactor, previousSessionToken: string): Promise<FlowOutcome> {
  try {
    return { case: 'signedIn', ...(await open(ctx, linked, { code: undefined, previousSessionToken })) };
  } catch (err) {
    if (!(err instanceof DomainError) || err.reason !== 'two_factor_required') throw err;
    return { case: 'pending', pending: sealPending(ctx.oidcKey, { id: randomState(), ...linked }, ctx.clock()) };
  }
}

/** Opens a session as sign-in does. What the issuer shows of its owner is taken over once they have proven to be it. */
async function open(
  ctx: ActingContext,
  { accountId, generation, issuer, pictureUrl }: FirstFactor,
  shown: Pick<SessionRequest, 'code' | 'previousSessionToken' | 'useUp'>,
): Promise<SignedIn> {
  const session = await openSessionOf(ctx, { accountId, generation, issuer, ...shown });
  if (pictureUrl !== undefined) await updatePictureUrl(ctx.db, accountId, pictureUrl);
  return { account: await getAccount(ctx, accountId), session };
}

/**
 * Links a person to the account of a session, which may have ended while the issuer was asked. What proved its owner before may be worth nothing by now,
 * as after a reset of the password: then nothing is linked, whatever session the browser has come by since.
 */
async function link(
  ctx: ActingContext,
  { issuer, subject, pictureUrl }: Person,
  { accountId, credentialId: sessionId }: SessionPrincipal,
  generation: number,
): Promise<void> {
  await ctx.db.transaction().execute(async (tx) => {
    if (!(await lockAccount(tx, accountId))) throw errors.account_not_found();
    if (!(await holdSession(tx, accountId, sessionId))) throw errors.session_invalid();
    if ((await selectSignInBasisShared(tx, accountId))?.sign_in_generation !== generation) throw errors.oidc_flow_invalid();
    const linked = await insertLinkOnce(tx, { issuer, subject, account_id: accountId, created_at: ctx.clock() });
    if (linked.accountId !== accountId) throw errors.oidc_subject_linked();
    if (linked.isNew) await recordAccount(asSession(ctx, sessionId), tx, accountId, 'account.oidc_linked', { issuer, subject });
    if (pictureUrl !== undefined) await updatePictureUrl(tx, accountId, pictureUrl);
  });
}
