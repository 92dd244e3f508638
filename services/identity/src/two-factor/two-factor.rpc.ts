import type { ServiceImpl } from '@connectrpc/connect';
import type { TwoFactorService } from '@latchkey/proto/latchkey/identity/v1/two_factor_pb';
import type { IdentityContext } from '../context.ts';
import { disableTwoFactor, enableTwoFactor, setUpTwoFactor, verifyTwoFactorCode } from './two-factor.ts';

/** The second factor of accounts. */
export function twoFactorRpc(ctx: IdentityContext): ServiceImpl<typeof TwoFactorService> {
  return {
    async setUpTwoFactor({ accountId }) {
      return setUpTwoFactor(ctx, accountId);
    },
    async enableTwoFactor({ accountId, sessionId, code }) {
      return { recoveryCodes: await enableTwoFactor(ctx, { accountId, sessionId }, code) };
    },
    async disableTwoFactor({ accountId, sessionId, password, code }) {
      await disableTwoFactor(ctx, { accountId, sessionId }, { password, code });
      return {};
    },
    async verifyTwoFactorCode({ accountId, code }) {
      return { twoFactorEnabled: await verifyTwoFactorCode(ctx, accountId, code) };
    },
  };
}
