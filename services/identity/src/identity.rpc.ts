import { type Timestamp, timestampDate, timestampFromDate, timestampMs } from '@bufbuild/protobuf/wkt';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { actingFor } from '@latchkey/audit/actor';
import { withIdempotency } from '@latchkey/audit/idempotency';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { type RpcRoute, rpcRoute } from '@latchkey/kit/rpc/route';
import { AccountService } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { ApiKeyService, type UpdateApiKeyRequest } from '@latchkey/proto/latchkey/identity/v1/api_key_pb';
import { AuthenticationService, PrincipalKind } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { CredentialService } from '@latchkey/proto/latchkey/identity/v1/credential_pb';
import { OidcService } from '@latchkey/proto/latchkey/identity/v1/oidc_pb';
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
import { endAllSessions, endSession } from './session/session.ts';
import { endSessionOf, listSessions } from './session/sessions-of-account.ts';
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
  return [
    rpcRoute(AccountService, accountService(ctx, calls)),
    withIdempotency(rpcRoute(ApiKeyService, apiKeyService(ctx, findOwned)), {
      sealingKey: ctx.resultKey,
      secrets: new Set(['createApiKey', 'rotateApiKey']),
    }),
    rpcRoute(AuthenticationService, authenticationService(ctx)),
    rpcRoute(CredentialService, credentialService(ctx, mails)),
    rpcRoute(OidcService, oidcService(ctx)),
    rpcRoute(TwoFactorService, twoFactorService(ctx)),
  ];
}

function acting(ctx: IdentityContext, call: HandlerContext): ActingContext {
  const timeoutMs = () => call.timeoutMs() ?? DEADLINES_MS.longest;
  return { ...actingFor(ctx, call), call: { signal: call.signal, timeoutMs } };
}

type DeletionCalls = Omit<AppsCalls, 'findOwned'>;
const accountService = (ctx: IdentityContext, calls: DeletionCalls): ServiceImpl<typeof AccountService> => ({
  async signUp(request, call) {
    return toSignedIn(await signUp(acting(ctx, call), request));
  },
  async signIn(request, call) {
    return toSignedIn(await signIn(acting(ctx, call), request));
  },
  async signOut({ accountId, sessionId }, call) {
    await endSession(acting(ctx, call), accountId, sessionId);
    return {};
  },
  async signOutEverywhere({ accountId }, call) {
    await endAllSessions(acting(ctx, call), accountId);
    return {};
  },
  async getAccount({ accountId }) {
    return { account: toAccount(await getAccount(ctx, accountId)) };
  },
  async setAvatar({ accountId, avatarId, uploadedAt, removed }, call) {
    const change = { avatarId, uploadedAt: uploadedAt && timestampDate(uploadedAt), removed };
    return setAvatar(acting(ctx, call), accountId, change);
  },
  async listSessions({ accountId, sessionId }) {
    return { sessions: (await listSessions(ctx, accountId, sessionId)).map(toOpenSession) };
  },
  async endSession({ accountId, sessionId }, call) {
    await endSessionOf(acting(ctx, call), accountId, sessionId);
    return {};
  },
  async deleteAccount(request, call) {
    await deleteAccount(acting(ctx, call), request, calls.deleteApplications, calls.onApplicationsLeft);
    return {};
  },
  async listDeletedAccounts({ deletedSince, afterAccountId }) {
    const rows = await listDeletedAccounts(ctx, deletedSince && timestampDate(deletedSince), afterAccountId);
    const accounts = rows.map((row) => ({ accountId: row.account_id, deletedAt: timestampFromDate(row.deleted_at) }));
    return { accounts };
  },
  async getSignInMethods() {
    return { signUpOpen: ctx.signUp === 'open', oidcIssuers: [...ctx.oidcIssuers.keys()] };
  },
});

const apiKeyService = (ctx: IdentityContext, findOwned: keys.FindOwned): ServiceImpl<typeof ApiKeyService> => ({
  async listApiKeys({ accountId, pageToken }) {
    const { apiKeys, nextPageToken } = await keys.listApiKeys(ctx, accountId, pageToken);
    return { apiKeys: apiKeys.map(toApiKey), nextPageToken };
  },
  async createApiKey({ accountId, expiresAt, ...request }, call) {
    const settings = { ...request, expiresAt: expiresAt ? toDate(expiresAt) : null };
    const { apiKey, plaintextKey } = await keys.createApiKey(acting(ctx, call), accountId, settings, findOwned);
    return { apiKey: toApiKey(apiKey), plaintextKey };
  },
  async updateApiKey(request, call) {
    return { apiKey: toApiKey(await keys.updateApiKey(acting(ctx, call), request, toChange(request), findOwned)) };
  },
  async revokeApiKey(request, call) {
    return { apiKey: toApiKey(await keys.revokeApiKey(acting(ctx, call), request)) };
  },
  async rotateApiKey(request, call) {
    const { apiKey, plaintextKey } = await keys.rotateApiKey(acting(ctx, call), request, request.overlapSeconds);
    return { apiKey: toApiKey(apiKey), plaintextKey };
  },
  async getApiKeyUsage({ accountId }) {
    const { active, activeMax } = await keys.getApiKeyUsage(ctx, accountId);
    return { activeCount: BigInt(active), activeCountMax: BigInt(activeMax) };
  },
});

const authenticationService = (ctx: IdentityContext): ServiceImpl<typeof AuthenticationService> => ({
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

type CredentialImpl = ServiceImpl<typeof CredentialService>;
const credentialService = (ctx: IdentityContext, mails: MailQueue | undefined): CredentialImpl => ({
  async changePassword(request, call) {
    await passwords.changePassword(acting(ctx, call), request);
    return {};
  },
  async startPasswordReset({ email }) {
    await passwords.startPasswordReset(ctx, mails, email);
    return {};
  },
  async resetPassword(request, call) {
    await passwords.resetPasswordByLink(acting(ctx, call), request);
    return {};
  },
  async startEmailChange(request, call) {
    await emails.startEmailChange(acting(ctx, call), mails, request);
    return {};
  },
  async confirmEmailChange(request, call) {
    await emails.confirmEmailChange(acting(ctx, call), mails, request);
    return {};
  },
});

const oidcService = (ctx: IdentityContext): ServiceImpl<typeof OidcService> => ({
  async startOidc(request, call) {
    const { authorizationUrl, flow } = await startFlow(acting(ctx, call), request);
    return { authorizationUrl, flow: flow.text, expiresAt: timestampFromDate(flow.expiresAt) };
  },
  async finishOidc(request, call) {
    return { outcome: toOutcome(await finishFlow(acting(ctx, call), request)) };
  },
  async completeOidc(request, call) {
    return { signedIn: toSignedIn(await completeSignIn(acting(ctx, call), request)) };
  },
  async listOidcLinks({ accountId }) {
    const links = await listLinks(ctx, accountId);
    return { links: links.map(({ created_at, ...link }) => ({ ...link, createdAt: timestampFromDate(created_at) })) };
  },
  async unlinkOidc(request, call) {
    return { removed: await unlink(acting(ctx, call), request) };
  },
});

const twoFactorService = (ctx: IdentityContext): ServiceImpl<typeof TwoFactorService> => ({
  async setUpTwoFactor({ accountId }) {
    return twoFactor.setUpTwoFactor(ctx, accountId);
  },
  async enableTwoFactor(request, call) {
    return { recoveryCodes: await twoFactor.enableTwoFactor(acting(ctx, call), request) };
  },
  async disableTwoFactor(request, call) {
    await twoFactor.disableTwoFactor(acting(ctx, call), request);
    return {};
  },
  async verifyTwoFactorCode({ accountId, code }, call) {
    return { twoFactorEnabled: await twoFactor.verifyTwoFactorCode(acting(ctx, call), accountId, code) };
  },
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
  };
}

function toTimestamp(date: Date | null): Timestamp | undefined {
  return date ? timestampFromDate(date) : undefined;
}

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
