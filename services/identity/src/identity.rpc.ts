import { type Timestamp, timestampFromDate, timestampMs } from '@bufbuild/protobuf/wkt';
import type { HandlerContext } from '@connectrpc/connect';
import { actingFor, bindCalls } from '@latchkey/audit/actor';
import { withIdempotency } from '@latchkey/audit/idempotency';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { fromRow } from '@latchkey/kit/rpc/from-row';
import { type RpcImpl, type RpcRoute, rpcRoute } from '@latchkey/kit/rpc/route';
import {
  AccountSchema,
  AccountService,
  DeletedAccountSchema,
  OpenSessionSchema,
} from '@latchkey/proto/latchkey/identity/v1/account_pb';
import {
  ApiKeySchema,
  ApiKeyService,
  DailyRequestsSchema,
  type UpdateApiKeyRequest,
} from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import { AuthenticationService, PrincipalKind } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { CredentialService } from '@latchkey/proto/latchkey/identity/v1/credential_pb';
import { OidcLinkSchema, OidcService } from '@latchkey/proto/latchkey/identity/v1/oidc_pb';
import { TrustedIssuerSchema, TrustedIssuerService } from '@latchkey/proto/latchkey/identity/v1/trusted_issuer_pb';
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
import type { MailQueue } from './mail/mail-queue.ts';
import { listLinks, unlink } from './oidc/links.ts';
import { completeSignIn, type FlowOutcome, finishFlow, startFlow } from './oidc/oidc.ts';
import { errors } from './proto-errors.ts';
import { listRequests, recordRequests } from './request-count/request-count.ts';
import { endAllSessions, endSession, endSessionOf, listSessions } from './session/session.ts';
import { fromClaimTexts } from './trusted-issuer/claim-texts.ts';
import { exchangeToken } from './trusted-issuer/exchange-token.ts';
import * as trustedIssuers from './trusted-issuer/trusted-issuer.ts';
import * as twoFactor from './two-factor/two-factor.ts';

/**
 * The RPC services of identity: messages to use cases and back.
 * @param onApplicationsLeft called when applications of a deleted account are left
 */
export function identityRoutes(ctx: IdentityContext, onApplicationsLeft: () => void, mails: MailQueue | undefined): RpcRoute[] {
  const bind = bindCalls((call) => contextOf(ctx, call));
  return [
    rpcRoute(AccountService, accountService(ctx, bind, onApplicationsLeft)),
    withIdempotency(rpcRoute(ApiKeyService, apiKeyService(ctx, bind)), {
      sealingKey: ctx.resultKey,
      secrets: new Set(['createApiKey', 'rotateApiKey']),
    }),
    rpcRoute(AuthenticationService, authenticationService(ctx)),
    rpcRoute(CredentialService, credentialService(ctx, bind, mails)),
    rpcRoute(OidcService, oidcService(ctx, bind)),
    withIdempotency(rpcRoute(TrustedIssuerService, trustedIssuerService(ctx, bind)), { sealingKey: ctx.resultKey }),
    rpcRoute(TwoFactorService, twoFactorService(ctx, bind)),
  ];
}

function contextOf(ctx: IdentityContext, call: HandlerContext): ActingContext {
  const timeoutMs = () => call.timeoutMs() ?? DEADLINES_MS.longest;
  return { ...actingFor(ctx, call), call: { signal: call.signal, timeoutMs } };
}

type Bind = ReturnType<typeof bindCalls<ActingContext>>;
type AccountImpl = RpcImpl<typeof AccountService>;
const accountService = (ctx: IdentityContext, bind: Bind, onApplicationsLeft: () => void): AccountImpl => ({
  signUp: bind(signUp, toSignedIn),
  signIn: bind(signIn, toSignedIn),
  signOut: bind(endSession),
  signOutEverywhere: bind(async (acting, { accountId }) => void (await endAllSessions(acting, accountId))),
  getAccount: async ({ accountId }) => ({ account: toAccount(await getAccount(ctx, accountId)) }),
  setAvatar: bind(setAvatar),
  async listSessions(request) {
    return { sessions: (await listSessions(ctx, request)).map((row) => fromRow(OpenSessionSchema, row)) };
  },
  endSession: bind(endSessionOf),
  deleteAccount: bind((acting, request) => deleteAccount(acting, request, onApplicationsLeft)),
  async listDeletedAccounts({ deletedSince, afterAccountId }) {
    const since = deletedSince && new Date(Math.max(0, Math.min(timestampMs(deletedSince), DATE_MS_MAX)));
    const rows = await listDeletedAccounts(ctx, since, afterAccountId);
    return { accounts: rows.map((row) => fromRow(DeletedAccountSchema, row)) };
  },
  getSignInMethods: () => ({ signUpOpen: ctx.signUp === 'open', oidcIssuers: [...ctx.oidcIssuers.keys()] }),
});

const apiKeyService = (ctx: IdentityContext, bind: Bind): RpcImpl<typeof ApiKeyService> => ({
  async listApiKeys({ accountId, pageToken }) {
    const { apiKeys, nextPageToken } = await keys.listApiKeys(ctx, accountId, pageToken);
    return { apiKeys: apiKeys.map(toApiKey), nextPageToken };
  },
  async listApiKeyPage(request) {
    const { apiKeys, total } = await keys.listApiKeyPage(ctx, request);
    return { apiKeys: apiKeys.map(toApiKey), total };
  },
  async getApiKey(ref) {
    return toKey(await keys.getApiKey(ctx, ref));
  },
  createApiKey: bind((acting, { accountId, expiresAt, ...request }) => {
    const settings = { ...request, expiresAt: expiresAt ? toDate(expiresAt) : null };
    return keys.createApiKey(acting, accountId, settings);
  }, toCreated),
  updateApiKey: bind((acting, request) => keys.updateApiKey(acting, request, toChange(request)), toKey),
  revokeApiKey: bind(keys.revokeApiKey, toKey),
  rotateApiKey: bind((acting, request) => keys.rotateApiKey(acting, request, request.overlapSeconds), toCreated),
  async getApiKeyUsage({ accountId }) {
    const { active, activeMax } = await keys.getApiKeyUsage(ctx, accountId);
    return { activeCount: BigInt(active), activeCountMax: BigInt(activeMax) };
  },
  recordApiKeyRequests: ({ counts }) => recordRequests(ctx, counts),
  async listApiKeyRequests(request) {
    const rows = await listRequests(ctx, request, request.days);
    return { days: rows.map((row) => fromRow(DailyRequestsSchema, row)) };
  },
});
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
    const expiresAt = principal.expiresAt ? timestampFromDate(principal.expiresAt) : undefined;
    const message = { ...principal, kind, expiresAt };
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
    return { links: links.map((row) => fromRow(OidcLinkSchema, row)) };
  },
  unlinkOidc: bind(unlink, (removed) => ({ removed })),
});

const trustedIssuerService = (ctx: IdentityContext, bind: Bind): RpcImpl<typeof TrustedIssuerService> => ({
  async listTrustedIssuers({ accountId }) {
    return { trustedIssuers: (await trustedIssuers.listTrustedIssuers(ctx, accountId)).map(toTrustedIssuer) };
  },
  createTrustedIssuer: bind(trustedIssuers.createTrustedIssuer, (created) => ({ trustedIssuer: toTrustedIssuer(created) })),
  deleteTrustedIssuer: bind(trustedIssuers.deleteTrustedIssuer),
  exchangeToken: bind(exchangeToken),
});

const twoFactorService = (ctx: IdentityContext, bind: Bind): RpcImpl<typeof TwoFactorService> => ({
  setUpTwoFactor: ({ accountId }) => twoFactor.setUpTwoFactor(ctx, accountId),
  enableTwoFactor: bind(twoFactor.enableTwoFactor, (recoveryCodes) => ({ recoveryCodes })),
  disableTwoFactor: bind(twoFactor.disableTwoFactor),
  verifyTwoFactorCode: bind(twoFactor.verifyTwoFactorCode, (twoFactorEnabled) => ({ twoFactorEnabled })),
});

function toSignedIn({ account, session: { token, csrfToken, expiresAt } }: SignedIn) {
  return { account: toAccount(account), session: { token, csrfToken, expiresAt: timestampFromDate(expiresAt) } };
}

function toAccount(account: SignedIn['account']) {
  const { avatarId, ...message } = fromRow(AccountSchema, account);
  return { ...message, ...(!account.avatar_removed && { avatarId }) };
}

const toApiKey = (key: keys.ApiKey) => ({ ...fromRow(ApiKeySchema, key), etag: keys.etagOfKey(key) });

function toTrustedIssuer(row: trustedIssuers.TrustedIssuer) {
  return { ...fromRow(TrustedIssuerSchema, row), claims: JSON.stringify(fromClaimTexts(row.claims)) };
}

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
  if (outcome.case === 'signedIn') return { case: outcome.case, value: toSignedIn(outcome) };
  if (outcome.case === 'linked')
    return { case: outcome.case, value: { account: toAccount(outcome.account), csrfToken: outcome.csrfToken } };
  const { text, expiresAt } = outcome.pending;
  return { case: outcome.case, value: { pending: text, expiresAt: timestampFromDate(expiresAt) } };
}
