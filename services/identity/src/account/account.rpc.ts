import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import { actingFor } from '@latchkey/audit/actor';
import type { AccountService } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { setAvatar } from '../avatar/avatar.ts';
import type { IdentityContext } from '../context.ts';
import { endAllSessions, endSession } from '../session/session.ts';
import type { Account } from './account.store.ts';
import { getAccount, type SignedIn, signUp } from './account.ts';
import { signIn } from './sign-in.ts';

export function accountRpc(ctx: IdentityContext): ServiceImpl<typeof AccountService> {
  return {
    async signUp(request, call) {
      return toSignedIn(await signUp(actingFor(ctx, call), request));
    },
    async signIn(request, call) {
      return toSignedIn(await signIn(actingFor(ctx, call), request));
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

export function toSignedIn({ account, session: { token, csrfToken, expiresAt } }: SignedIn) {
  return { account: toMessage(account), session: { token, csrfToken, expiresAt: timestampFromDate(expiresAt) } };
}

export function toMessage(account: Account) {
  const { id, username, email } = account;
  return {
    id,
    username,
    email,
    twoFactorEnabled: account.two_factor_enabled,
    pictureUrl: account.picture_url ?? undefined,
    avatarId: account.avatar_id ?? undefined,
    createdAt: timestampFromDate(account.created_at),
  };
}
