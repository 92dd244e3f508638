import { type Timestamp, timestampFromDate, timestampMs } from '@bufbuild/protobuf/wkt';
import type { HandlerContext } from '@connectrpc/connect';
import { actingFor, bindCalls } from '@latchkey/audit/actor';
import { withIdempotency } from '@latchkey/audit/idempotency';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { type RpcImpl, type RpcRoute, rpcRoute } from '@latchkey/kit/rpc/route';
import { AccountService } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { ApiKeyOrder, ApiKeyService, type UpdateApiKeyRequest } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import { AuthenticationService, PrincipalKind } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { CredentialService } from '@latchkey/proto/latchkey/identity/v1/credential_pb';
import { OidcService } from '@latchkey/proto/latchkey/identity/v1/oidc_pb';
import { TrustedIssuerService } from '@latchkey/proto/latchkey/identity/v1/trusted_issuer_pb';
import { TwoFactorService } from '@latchkey/proto/latchkey/identity/v1/two_factor_pb';
import { getAccount, type SignedIn, signUp } from './account/account.ts';
import { setAvatar } from './account/avatar.ts';
import * as emails from './account/change-email.ts';
import * as passwords from './account/change-password.ts';
import { signIn } from './account/sign-in.ts';
import * as keys from './api-key/api-key.ts';
import type { ApiKeyChange } from './api-key/api-key-rules.ts';
import { authenticateApiKey, authenticateSession } from './authentication/authentication.ts';
import type { ActingContext, IdentityContext } from './context.ts';
import { deleteAccount, listDeletedAccounts } from './deletion/delete-account.ts';
import type { DeleteApplications } from './deletion/delete-applications.client.ts';
import { errors } from './errors.ts';
import type { MailQueue } from './mail/mail-queue.ts';
import { listLinks, unlink } from './oidc/links.ts';
import { completeSignIn, type FlowOutcome, finishFlow, startFlow } from './oidc/oidc.ts';
import { listRequests, recordRequests } from './request-count/request-count.ts';
import { endAllSessions, endSession } from './session/session.ts';
import { endSessionOf, listSessions } from './session/sessions-of-account.ts';
import { exchangeToken } from './trusted-issuer/exchange-token.ts';
import * as trustedIssuers from './trusted-issuer/trusted-issuer.ts';
import { fromClaimTexts } from './trusted-issuer/trusted-issuer-rules.ts';
import * as twoFactor from './two-factor/two-factor.ts';

/** Calls of the apps service. */
export interface AppsCalls {
  readonly findOwned: keys.FindOwned;
  readonly deleteApplications: DeleteApplications;
  /** Called when applications of a deleted account are left. */
  readonly onApplicationsLeft: () => void;
}

/** The RPC services of identity: messages to use cases and back. */
export function identityRoutes(
  ctx: IdentityContext,
  { findOwned, ...calls }: AppsCalls,
  mails: MailQueue | undefined,
): RpcRoute[] {
  const bind = bindCalls((call) => contextOf(ctx, call));
  return [
    rpcRoute(AccountService, accountService(ctx, bind, calls)),
    withIdempotency(rpcRoute(ApiKeyService, apiKeyService(ctx, bind, findOwned)), {
      sealingKey: ctx.resultKey,
      secrets: new Set(['createApiKey', 'rotateApiKey']),
    }),
    rpcRoute(AuthenticationService, authenticationService(ctx)),
    rpcRoute(CredentialService, credentialService(ctx, bind, mails)),
    rpcRoute(OidcService, oidcService(ctx, bind)),
    withIdempotency(rpcRoute(TrustedIssuerService, trustedIssuerService(ctx, bind, findOwned)), { sealingKey: ctx.resultKey }),
    rpcRoute(TwoFactorService, twoFactorService(ctx, bind)),
  ];
}

function contextOf(ctx: IdentityContext, call: HandlerContext): ActingContext {
  const timeoutMs = () => call.timeoutMs() ?? DEADLINES_MS.longest;
  return { ...actingFor(ctx, call), call: { signal: call.signal, timeoutMs } };
}

type Bind = ReturnType<typeof bindCalls<ActingContext>>;
type DeletionCalls = Omit<AppsCalls, 'findOwned'>;
const accountService = (ctx: IdentityContext, bind: Bind, calls: DeletionCalls): RpcImpl<typeof AccountService> => ({
  signUp: bind(signUp, toSignedIn),
  signIn: bind(signIn, toSignedIn),
  signOut: bind(endSession),
  signOutEverywhere: bind(async (acting, { accountId }) => void (await endAllSessions(acting, accountId))),
  getAccount: async ({ accountId }) => ({ account: toAccount(await getAccount(ctx, accountId)) }),
  setAvatar: bind((acting, { accountId, avatarId, uploadedAt, removed }) => {
    return setAvatar(acting, accountId, { avatarId, uploadedAt: uploadedAt && toDate(uploadedAt), removed });
  }),
  listSessions: async (request) => ({ sessions: (await listSessions(ctx, request)).map(toOpenSession) }),
  endSession: bind(endSessionOf),
  deleteAccount: bind((acting, request) => {
    return deleteAccount(acting, request, calls.deleteApplications, calls.onApplicationsLeft);
  }),
  async listDeletedAccounts({ deletedSince, afterAccountId }) {
    const since = deletedSince && new Date(Math.max(0, Math.min(timestampMs(deletedSince), DATE_MS_MAX)));
    const rows = await listDeletedAccounts(ctx, since, afterAccountId);
    const accounts = rows.map((row) => ({ accountId: row.account_id, deletedAt: timestampFromDate(row.deleted_at) }));
    return { accounts };
  },
  getSignInMethods: () => ({ signUpOpen: ctx.signUp === 'open', oidcIssuers: [...ctx.oidcIssuers.keys()] }),
});

const apiKeyService = (ctx: IdentityContext, bind: Bind, findOwned: keys.FindOwned): RpcImpl<typeof ApiKeyService> => ({
  async listApiKeys({ accountId, pageToken }) {
    const { apiKeys, nextPageToken } = await keys.listApiKeys(ctx, accountId, pageToken);
    return { apiKeys: apiKeys.map(toApiKey), nextPageToken };
  },
  async listApiKeyPage({ accountId, order, ...request }) {
    const { apiKeys, total } = await keys.listApiKeyPage(ctx, accountId, { ...request, order: API_KEY_ORDERS[order] });
    return { apiKeys: apiKeys.map(toApiKey), total };
  },
  async getApiKey(ref) {
    return toKey(await keys.getApiKey(ctx, ref));
  },
  createApiKey: bind((acting, { accountId, expiresAt, ...request }) => {
    const settings = { ...request, expiresAt: expiresAt ? toDate(expiresAt) : null };
    return keys.createApiKey(acting, accountId, settings, findOwned);
  }, toCreated),
  updateApiKey: bind((acting, request) => keys.updateApiKey(acting, request, toChange(request), findOwned), toKey),
  revokeApiKey: bind(keys.revokeApiKey, toKey),
  rotateApiKey: bind((acting, request) => keys.rotateApiKey(acting, request, request.overlapSeconds), toCreated),
  async getApiKeyUsage({ accountId }) {
    const { active, activeMax } = await keys.getApiKeyUsage(ctx, accountId);
    return { activeCount: BigInt(active), activeCountMax: BigInt(activeMax) };
  },
  recordApiKeyRequests: ({ counts }) => recordRequests(ctx, counts),
  async listApiKeyRequests(request) {
    const rows = await listRequests(ctx, request, request.days);
    return { days: rows.map(({ date, requests }) => ({ date, requests: BigInt(requests) })) };
  },
});
const API_KEY_ORDERS = {
  [ApiKeyOrder.UNSPECIFIED]: 'name',
  [ApiKeyOrder.NAME]: 'name',
  [ApiKeyOrder.CREATED_AT]: 'createdAt',
  [ApiKeyOrder.LAST_USED_AT]: 'lastUsedAt',
} as const;
const toKey = (apiKey: keys.ApiKey) => ({ apiKey: toApiKey(apiKey) });
const toCreated = ({ apiKey, plaintextKey }: Awaited<ReturnType<typeof keys.createApiKey>>) => ({
  apiKey: toApiKey(apiKey),
  plaintextKey,
});

const authenticationService = (ctx: IdentityContext): RpcImpl<typeof AuthenticationService> => ({
  async authenticate({ credential, ...client }) {
    if (credential.case === undefined) throw errors.session_invalid();
    const isKey = credential.case === 'apiKey';
    const { principal, epoch } = await (isKey
      ? authenticateApiKey(ctx, credential.value, client.clientIp)
      : authenticateSession(ctx, credential.value, client));
    const kind = isKey ? PrincipalKind.API_KEY : PrincipalKind.SESSION;
    const message = { ...principal, kind, expiresAt: toTimestamp(principal.expiresAt) };
    return { principal: message, epochKey: epoch.key, epoch: epoch.value };
  },
});

type Mails = MailQueue | undefined;
const credentialService = (ctx: IdentityContext, bind: Bind, mails: Mails): RpcImpl<typeof CredentialService> => ({
  changePassword: bind(passwords.changePassword),
  startPasswordReset: ({ email }) => passwords.startPasswordReset(ctx, mails, email),
  resetPassword: bind(passwords.resetPasswordByLink),
  startEmailChange: bind((acting, request) => emails.startEmailChange(acting, mails, request)),
  confirmEmailChange: bind((acting, request) => emails.confirmEmailChange(acting, mails, request)),
});

const oidcService = (ctx: IdentityContext, bind: Bind): RpcImpl<typeof OidcService> => ({
  startOidc: bind(startFlow, ({ authorizationUrl, flow: { text: flow, expiresAt } }) => {
    return { authorizationUrl, flow, expiresAt: timestampFromDate(expiresAt) };
  }),
  finishOidc: bind(finishFlow, (outcome) => ({ outcome: toOutcome(outcome) })),
  completeOidc: bind(completeSignIn, (signedIn) => ({ signedIn: toSignedIn(signedIn) })),
  async listOidcLinks({ accountId }) {
    const links = await listLinks(ctx, accountId);
    return { links: links.map(({ created_at, ...link }) => ({ ...link, createdAt: timestampFromDate(created_at) })) };
  },
  unlinkOidc: bind(unlink, (removed) => ({ removed })),
});

type TrustedIssuerImpl = RpcImpl<typeof TrustedIssuerService>;
const trustedIssuerService = (ctx: IdentityContext, bind: Bind, findOwned: keys.FindOwned): TrustedIssuerImpl => ({
  async listTrustedIssuers({ accountId }) {
    return { trustedIssuers: (await trustedIssuers.listTrustedIssuers(ctx, accountId)).map(toTrustedIssuer) };
  },
  createTrustedIssuer: bind(
    (acting, request) => trustedIssuers.createTrustedIssuer(acting, request, findOwned),
    (created) => ({ trustedIssuer: toTrustedIssuer(created) }),
  ),
  deleteTrustedIssuer: bind(trustedIssuers.deleteTrustedIssuer),
  exchangeToken: bind((acting, request) => exchangeToken(acting, request, findOwned)),
});

const twoFactorService = (ctx: IdentityContext, bind: Bind): RpcImpl<typeof TwoFactorService> => ({
  setUpTwoFactor: ({ accountId }) => twoFactor.setUpTwoFactor(ctx, accountId),
  enableTwoFactor: bind(twoFactor.enableTwoFactor, (recoveryCodes) => ({ recoveryCodes })),
  disableTwoFactor: bind(twoFactor.disableTwoFactor),
  verifyTwoFactorCode: bind(twoFactor.verifyTwoFactorCode, (twoFactorEnabled) => ({ twoFactorEnabled })),
});

function toOpenSession({ id, ...session }: Awaited<ReturnType<typeof listSessions>>[number]) {
  return {
    id,
    createdAt: timestampFromDate(session.created_at),
    lastUsedAt: timestampFromDate(session.last_seen_at),
    lastUsedIp: session.last_used_ip ?? undefined,
    userAgent: session.user_agent ?? undefined,
  };
}

function toSignedIn({ account, session: { token, csrfToken, expiresAt } }: SignedIn) {
  return { account: toAccount(account), session: { token, csrfToken, expiresAt: timestampFromDate(expiresAt) } };
}

function toAccount({ id, username, email, ...account }: SignedIn['account']) {
  return {
    id,
    username,
    email,
    twoFactorEnabled: account.two_factor_enabled,
    pictureUrl: account.picture_url ?? undefined,
    avatarId: account.avatar_removed ? undefined : (account.avatar_id ?? undefined),
    createdAt: timestampFromDate(account.created_at),
  };
}

function toApiKey({ id, name, scopes, ...key }: keys.ApiKey) {
  return {
    id,
    name,
    scopes,
    publicId: key.public_id,
    keyLast4: key.key_last4,
    allApplications: key.all_applications,
    applicationIds: key.application_ids,
    expiresAt: toTimestamp(key.expires_at),
    revokedAt: toTimestamp(key.revoked_at),
    lastUsedAt: toTimestamp(key.last_used_at),
    lastUsedIp: key.last_used_ip ?? undefined,
    createdAt: toTimestamp(key.created_at),
    updatedAt: toTimestamp(key.updated_at),
    etag: keys.etagOfKey({ ...key, id, name, scopes }),
    issuer: key.issuer ?? undefined,
    subject: key.subject ?? undefined,
  };
}

function toTrustedIssuer({ id, name, issuer, audience, scopes, ...row }: trustedIssuers.TrustedIssuer) {
  return {
    ...{ id, name, issuer, audience, scopes },
    claims: JSON.stringify(fromClaimTexts(row.claims)),
    jwks: row.jwks ?? undefined,
    allApplications: row.all_applications,
    applicationIds: row.application_ids,
    lifetimeSeconds: row.lifetime_seconds,
    createdAt: timestampFromDate(row.created_at),
  };
}

function toTimestamp(date: Date | null): Timestamp | undefined {
  return date ? timestampFromDate(date) : undefined;
}

/** Latest time of a Date. */
const DATE_MS_MAX = 8.64e15;

/** A time that no Date can hold becomes an invalid one, which the rules reject. */
function toDate(timestamp: Timestamp): Date {
  return new Date(timestampMs(timestamp));
}

function toChange({ name, scopes, allApplications, applicationIds, expiry }: UpdateApiKeyRequest): ApiKeyChange {
  const change = { name, scopes: scopes?.scopes, allApplications, applicationIds: applicationIds?.applicationIds };
  if (expiry.case === 'expiresAt') return { ...change, expiresAt: toDate(expiry.value) };
  return { ...change, ...(expiry.value && { expiresAt: null }) };
}

function toOutcome(outcome: FlowOutcome) {
  switch (outcome.case) {
    case 'signedIn':
      return { case: outcome.case, value: toSignedIn(outcome) };
    case 'linked':
      return { case: outcome.case, value: { account: toAccount(outcome.account), csrfToken: outcome.csrfToken } };
    case 'pending': {
      const { text, expiresAt } = outcome.pending;
      return { case: outcome.case, value: { pending: text, expiresAt: timestampFromDate(expiresAt) } };
    }
  }
}
