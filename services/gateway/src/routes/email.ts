import { CredentialService } from '@latchkey/proto/latchkey/identity/v1/credential_pb';
import { z } from 'zod';
import { countPasswordFailures } from '../authentication/sign-in-failures.ts';
import { defineRoute, type RouteContext } from '../routing/route.ts';
import { emailText, ownerProof } from '../routing/schemas.ts';
import { EXAMPLE_TOKEN, linkTokenText } from './password.ts';

const changeBody = z.strictObject({ email: emailText(), ...ownerProof });

const confirmBody = z.strictObject({ token: linkTokenText });

export function emailRoutes(context: RouteContext) {
  const { credentials } = context.clients;
  const limit = { limit: context.limits.signIn, per: 'ip' } as const;
  return [
    defineRoute('POST /api/v1/auth/email/change', 'session', {
      operationId: 'changeEmail',
      summary: 'Change the email',
      description: [
        'Sends a mail with a link to the new address, and a notice to the current one.',
        'The email changes when `confirmEmail` gets the token of the link, which is valid once for 30 minutes.',
        'An account and an address get 5 mails with a link an hour.',
      ].join(' '),
      limit,
      body: changeBody,
      examples: { password: { email: 'ada@new.example', password: 'correct horse battery staple' } },
      failures: [CredentialService.method.startEmailChange],
      message: 'A mail to the new address is on its way. Open its link to confirm the change.',
      handle: (request) =>
        countPasswordFailures(context, request, (session) => credentials.startEmailChange({ ...session, ...request.body })),
    }),
    defineRoute('POST /api/v1/auth/email/confirm', 'session', {
      operationId: 'confirmEmail',
      summary: 'Confirm the new email with the link of a mail',
      description: 'The session may be any of the account that asked for the change.',
      limit,
      body: confirmBody,
      examples: { link: { token: EXAMPLE_TOKEN } },
      failures: [CredentialService.method.confirmEmailChange],
      message: 'Email changed.',
      handle: ({ principal: { accountId }, body: { token } }) => credentials.confirmEmailChange({ accountId, token }),
    }),
  ];
}
