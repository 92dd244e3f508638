import type { ServiceImpl } from '@connectrpc/connect';
import { actingFor } from '@latchkey/audit/actor';
import type { TwoFactorService } from '@latchkey/proto/latchkey/identity/v1/two_factor_pb';
import type { IdentityContext } from '../context.ts';
import { disableTwoFactor, enableTwoFactor, setUpTwoFactor, verifyTwoFactorCode } from './two-factor.ts';

/** The second factor of accounts. */
export function twoFactorRpc(ctx: IdentityContext): ServiceImpl<typeof TwoFactorService> {
  return {
    async setUpTwoFactor({ accountId }) {
      return setUpTwoFactor(ctx, accountId);
    },
    async enableTwoFactor({ accountId, sessionId, code }, call) {
      return { recoveryCodes: await enableTwoFactor(actingFor(ctx, call), { accountId, sessionId }, code) };
    },
    async disableTwoFactor({ accountId, sessionId, password, code }, call) {
      await disableTwoFactor(actingFor(ctx, call), { accountId, sessionId }, { password, code });
      return {};
    },
    async verifyTwoFactorCode({ accountId, code }, call) {
      return { twoFactorEnabled: await verifyTwoFactorCode(actingFor(ctx, call), accountId, code) };
    },
  };
}
