import type { ServiceImpl } from '@connectrpc/connect';
import { actingFor } from '@latchkey/audit/actor';
import type { TwoFactorService } from '@latchkey/proto/latchkey/identity/v1/two_factor_pb';
import type { IdentityContext } from '../context.ts';
import { disableTwoFactor, enableTwoFactor, setUpTwoFactor, verifyTwoFactorCode } from './two-factor.ts';

export function twoFactorRpc(ctx: IdentityContext): ServiceImpl<typeof TwoFactorService> {
  return {
    async setUpTwoFactor({ accountId }) {
      return setUpTwoFactor(ctx, accountId);
    },
    async enableTwoFactor(request, call) {
      return { recoveryCodes: await enableTwoFactor(actingFor(ctx, call), request) };
    },
    async disableTwoFactor(request, call) {
      await disableTwoFactor(actingFor(ctx, call), request);
      return {};
    },
    async verifyTwoFactorCode({ accountId, code }, call) {
      return { twoFactorEnabled: await verifyTwoFactorCode(actingFor(ctx, call), accountId, code) };
    },
  };
}
