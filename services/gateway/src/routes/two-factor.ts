import { z } from 'zod';
import type { SignInFailures } from '../authentication/sign-in-failures.ts';
import type { Clients } from '../clients.ts';
import type { Limits } from '../limit/limits.ts';
import { defineRoute, type Route } from '../route/route.ts';
import { twoFactorCode } from './schemas.ts';
import { withPassword } from './shown-password.ts';

const TAG = 'Accounts';

const enableBody = z.strictObject({
  code: twoFactorCode.meta({ description: 'Code that the authenticator app shows, once it has the secret of `setUpTwoFactor`.' }),
});

const disableBody = z.strictObject({
  password: z.string().max(1_000).optional().meta({ description: 'Of the account; needed, and looked at, where it has one.' }),
  code: twoFactorCode.meta({ description: 'Code of the authenticator app, or a recovery code.' }),
});

/** What the routes of the second factor work with. */
export interface TwoFactorRouteOptions {
  readonly clients: Pick<Clients, 'accounts' | 'twoFactor'>;
  readonly limits: Limits;
  readonly signInFailures: SignInFailures;
}

/** Setting up, enabling and disabling the second factor (decisions 4). */
export function twoFactorRoutes(options: TwoFactorRouteOptions): Route[] {
  const { clients, limits } = options;
  const { twoFactor } = clients;
  return [
    defineRoute({
      method: 'POST',
      url: '/api/v1/auth/two-factor/set-up',
      operationId: 'setUpTwoFactor',
      access: 'session',
      tag: TAG,
      summary: 'Set up two-factor authentication',
      description:
        'Makes the secret for an authenticator app. Nothing changes until it is enabled; before that, each call makes another secret.',
      data: z.object({
        secret: z.string().meta({ description: 'In base32, to type in.' }),
        otpauthUrl: z.string().meta({ description: 'To show as a QR code.' }),
      }),
      message: 'Two-factor authentication set up.',
      handle: async ({ principal, call }) => {
        const { secret, otpauthUrl } = await twoFactor.setUpTwoFactor({ accountId: principal.accountId }, call);
        return { secret, otpauthUrl };
      },
    }),
    defineRoute({
      method: 'POST',
      url: '/api/v1/auth/two-factor/enable',
      operationId: 'enableTwoFactor',
      access: 'session',
      tag: TAG,
      summary: 'Enable two-factor authentication',
      description:
        'Ends the other sessions of the account. The recovery codes are shown this once; each is good once in place of a code.',
      body: enableBody,
      examples: { code: { code: '123456' } },
      data: z.object({ recoveryCodes: z.array(z.string()).length(10) }),
      message: 'Two-factor authentication enabled.',
      handle: async ({ principal: { accountId, credentialId: sessionId }, body: { code }, call }) => {
        const { recoveryCodes } = await twoFactor.enableTwoFactor({ accountId, sessionId, code }, call);
        return { recoveryCodes };
      },
    }),
    defineRoute({
      method: 'POST',
      url: '/api/v1/auth/two-factor/disable',
      operationId: 'disableTwoFactor',
      access: 'session',
      tag: TAG,
      summary: 'Disable two-factor authentication',
      description: 'Ends the other sessions of the account. The secret and the recovery codes are forgotten.',
      limit: { limit: limits.twoFactorDisabling, per: 'account' },
      body: disableBody,
      examples: { code: { password: 'correct horse battery staple', code: '123456' } },
      message: 'Two-factor authentication disabled.',
      handle: async ({ principal: { accountId, credentialId: sessionId }, body: { password = '', code }, clientIp, call }) => {
        const request = { accountId, sessionId, password, code };
        await withPassword(options, { accountId, clientIp, call }, () => twoFactor.disableTwoFactor(request, call));
      },
    }),
  ];
}
