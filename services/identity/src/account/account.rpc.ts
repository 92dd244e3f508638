import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import { actingFor } from '@latchkey/audit/actor';
import type { AccountService } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { setAvatar } from '../avatar/avatar.ts';
import type { IdentityContext } from '../context.ts';
import { endAllSessions, endSession } from '../session/session.ts';
import { type Account, getAccount, type SignedIn, signUp } from './account.ts';
import { signIn } from './sign-in.ts';

/** Where the gateway serves an account's own avatar (specification 4.2, decisions 8). */
const AVATAR_PATH = '/api/v1/panel/avatar';

/** Accounts and the sessions they are used through. */
export function accountRpc(ctx: IdentityContext): ServiceImpl<typeof AccountService> {
  return {
    async signUp({ username, email, password, previousSessionToken }, call) {
      return toSignedIn(await signUp(actingFor(ctx, call), { username, email, password, previousSessionToken }));
    },
    async signIn({ email, password, code, previousSessionToken }, call) {
      return toSignedIn(await signIn(actingFor(ctx, call), { email, password, code, previousSessionToken }));
    },
    async signOut({ accountId, sessionId }, call) {
      await endSession(actingFor(ctx, call), accountId, sessionId);
      return {};
    },
    async signOutEverywhere({ accountId }, call) {
      await endAllSessions(actingFor(ctx, call), accountId);
      return {};
    },
    async getAccount({ accountId }) {
      return { account: toMessage(await getAccount(ctx, accountId)) };
    },
    async setAvatar({ accountId, avatarId, uploadedAt }, call) {
      return setAvatar(actingFor(ctx, call), { accountId, avatarId, uploadedAt: uploadedAt && timestampDate(uploadedAt) });
    },
  };
}

/** An account and the session that was opened for it. */
export function toSignedIn({ account, session }: SignedIn) {
  const { token, csrfToken, expiresAt } = session;
  return { account: toMessage(account), session: { token, csrfToken, expiresAt: timestampFromDate(expiresAt) } };
}

/** An account. */
export function toMessage({ id, username, email, avatarId, pictureUrl, twoFactorEnabled, createdAt }: Account) {
  const avatarUrl = avatarId === undefined ? pictureUrl : `${AVATAR_PATH}?v=${avatarId}`;
  return {
    id,
    username,
    email,
    ...(avatarUrl !== undefined && { avatarUrl }),
    ...(avatarId !== undefined && { avatarId }),
    twoFactorEnabled,
    createdAt: timestampFromDate(createdAt),
  };
}
