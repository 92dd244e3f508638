import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import type { AccountService } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import type { IdentityContext } from '../context.ts';
import { endSession } from '../session/session.ts';
import { type Account, getAccount, type SignedIn, signIn, signUp } from './account.ts';

/** Accounts and the sessions they are used through. */
export function accountRpc(ctx: IdentityContext): ServiceImpl<typeof AccountService> {
  return {
    async signUp({ username, email, password }) {
      return toSignedIn(await signUp(ctx, { username, email, password }));
    },
    async signIn({ email, password }) {
      return toSignedIn(await signIn(ctx, email, password));
    },
    async signOut({ accountId, sessionId }) {
      await endSession(ctx, accountId, sessionId);
      return {};
    },
    async getAccount({ accountId }) {
      return { account: toMessage(await getAccount(ctx, accountId)) };
    },
  };
}

function toSignedIn({ account, session }: SignedIn) {
  const { token, csrfToken, expiresAt } = session;
  return { account: toMessage(account), session: { token, csrfToken, expiresAt: timestampFromDate(expiresAt) } };
}

function toMessage({ id, username, email, createdAt }: Account) {
  return { id, username, email, twoFactorEnabled: false, createdAt: timestampFromDate(createdAt) };
}
