import { z } from 'zod';
import { countPasswordFailures } from '../authentication/sign-in-failures.ts';
import { defineRoute, type RouteContext } from '../routing/route.ts';
import { textUpTo, twoFactorCode } from '../routing/schemas.ts';

const enableBody = z.strictObject({
  code: twoFactorCode.meta({ description: 'Code that the authenticator app shows, once it has the secret of `setUpTwoFactor`.' }),
});

const disableBody = z.strictObject({
  password: textUpTo(1_000).exactOptional().meta({ description: 'Password of the account; required if it has one.' }),
  code: twoFactorCode.meta({ description: 'Code of the authenticator app, or a recovery code.' }),
});

export function twoFactorRoutes(context: RouteContext) {
  const { clients, limits } = context;
  const { twoFactor } = clients;
  return {
    setUpTwoFactor: defineRoute('POST /api/v1/auth/two-factor/set-up', 'session', {
      summary: 'Set up two-factor authentication',
      description:
        'Makes the secret for an authenticator app. Nothing changes before it is enabled; each call makes another secret.',
      data: z.object({
        secret: z.string().meta({ description: 'In base32, to type in.' }),
        otpauthUrl: z.string().meta({ description: 'To show as a QR code.' }),
      }),
      message: 'Two-factor authentication set up.',
      handle: ({ principal: { accountId } }) => twoFactor.setUpTwoFactor({ accountId }),
    }),
    enableTwoFactor: defineRoute('POST /api/v1/auth/two-factor/enable', 'session', {
      summary: 'Enable two-factor authentication',
      description: 'Ends the other sessions of the account. The recovery codes are shown once; each can replace a code once.',
      body: enableBody,
      examples: { code: { code: '123456' } },
      data: z.object({ recoveryCodes: z.array(z.string()).length(10) }),
      message: 'Two-factor authentication enabled.',
      handle: ({ principal: { accountId, credentialId: sessionId }, body: { code } }) =>
        twoFactor.enableTwoFactor({ accountId, sessionId, code }),
    }),
    disableTwoFactor: defineRoute('POST /api/v1/auth/two-factor/disable', 'session', {
      summary: 'Disable two-factor authentication',
      description: 'Ends the other sessions of the account. The secret and the recovery codes are deleted.',
      limit: { limit: limits.twoFactorDisabling, per: 'account' },
      body: disableBody,
      examples: { code: { password: 'correct horse battery staple', code: '123456' } },
      message: 'Two-factor authentication disabled.',
      handle: (request) =>
        countPasswordFailures(context, request, (session) => twoFactor.disableTwoFactor({ ...session, ...request.body })),
    }),
  };
}
