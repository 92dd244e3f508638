import { MAIL_LINK_MINUTES, MAILS_PER_HOUR_MAX } from '@latchkey/contract/limits';
import { z } from 'zod';
import { clearCache } from '../authentication/cookies.ts';
import { countPasswordFailures } from '../authentication/sign-in-failures.ts';
import { defineRoute, type RouteContext } from '../routing/route.ts';
import { emailText, newPassword, ownerProof, textUpTo } from '../routing/schemas.ts';

const EXAMPLE_PASSWORD = 'correct horse battery staple';

const EXAMPLE_TOKEN = 'u8Yb0cJqv3mWzK5xT2nRfLdA7hGsEpQi';

const linkTokenText = textUpTo(1_000).meta({ description: "Token of the mail's link, after `#token=`." });

const passwordBody = z.strictObject({ ...ownerProof, newPassword });

const forgotBody = z.strictObject({ email: emailText(z.regex(z.regexes.html5Email, 'must be an email address')) });

const resetBody = z.strictObject({ token: linkTokenText, newPassword });

const emailBody = z.strictObject({ email: emailText(), ...ownerProof });

const confirmBody = z.strictObject({ token: linkTokenText });

export function credentialRoutes(context: RouteContext) {
  const { credentials } = context.clients;
  const limit = { limit: context.limits.signIn, per: 'ip' } as const;
  return {
    changePassword: defineRoute('POST /api/v1/auth/password/change', 'session', {
      summary: 'Change the password',
      description: 'Ends the other sessions of the account. An account without a password gets one.',
      limit,
      body: passwordBody,
      examples: { password: { password: EXAMPLE_PASSWORD, newPassword: 'another long passphrase' } },
      message: 'Password changed.',
      handle: (request) =>
        countPasswordFailures(context, request, (session) => credentials.changePassword({ ...session, ...request.body })),
    }),
    forgotPassword: defineRoute('POST /api/v1/auth/password/forgot', 'public', {
      summary: 'Send a mail to reset the password',
      description: [
        'The response is the same whether or not an account has the email.',
        `The link in the mail is valid once for ${MAIL_LINK_MINUTES} minutes. An account gets ${MAILS_PER_HOUR_MAX} such mails an hour; further ones are not sent.`,
      ].join(' '),
      limit,
      body: forgotBody,
      examples: { email: { email: 'ada@example.com' } },
      failures: ['startPasswordReset'],
      message: 'If an account has this email, a mail is on its way.',
      handle: ({ body: { email } }) => credentials.startPasswordReset({ email }),
    }),
    resetPassword: defineRoute('POST /api/v1/auth/password/reset', 'public', {
      summary: 'Reset the password with the link of a mail',
      description: 'Ends all sessions of the account. Two-factor authentication, linked issuers and management keys stay.',
      limit,
      body: resetBody,
      examples: { link: { token: EXAMPLE_TOKEN, newPassword: 'another long passphrase' } },
      message: 'Password reset. Sign in with the new password.',
      handle: async ({ body, reply }) => {
        await credentials.resetPassword(body);
        clearCache(reply);
      },
    }),
    changeEmail: defineRoute('POST /api/v1/auth/email/change', 'session', {
      summary: 'Change the email',
      description: [
        'Sends a mail with a link to the new address, and a notice to the current one.',
        `The email changes when \`confirmEmail\` gets the token of the link, which is valid once for ${MAIL_LINK_MINUTES} minutes.`,
        `An account and an address get ${MAILS_PER_HOUR_MAX} mails with a link an hour.`,
      ].join(' '),
      limit,
      body: emailBody,
      examples: { password: { email: 'ada@new.example', password: EXAMPLE_PASSWORD } },
      failures: ['startEmailChange'],
      message: 'A mail to the new address is on its way. Open its link to confirm the change.',
      handle: (request) =>
        countPasswordFailures(context, request, (session) => credentials.startEmailChange({ ...session, ...request.body })),
    }),
    confirmEmail: defineRoute('POST /api/v1/auth/email/confirm', 'session', {
      summary: 'Confirm the new email with the link of a mail',
      description: 'The session may be any of the account that asked for the change.',
      limit,
      body: confirmBody,
      examples: { link: { token: EXAMPLE_TOKEN } },
      failures: ['confirmEmailChange'],
      message: 'Email changed.',
      handle: ({ principal: { accountId }, body: { token } }) => credentials.confirmEmailChange({ accountId, token }),
    }),
  };
}
