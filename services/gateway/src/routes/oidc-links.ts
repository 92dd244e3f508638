import { z } from 'zod';
import { OIDC_PATH } from '../authentication/cookies.ts';
import { countPasswordFailures } from '../authentication/sign-in-failures.ts';
import { component, defineRoute, type RouteContext } from '../routing/route.ts';
import { issuerName, nonEmptyText, ownerProof, textUpTo, timestamp } from '../routing/schemas.ts';
import { startFlow } from './oidc.ts';

const EXAMPLE_PROOF = { issuer: 'acme', password: 'correct horse battery staple' };

const linkBody = z.strictObject({ issuer: issuerName, ...ownerProof });

const unlinkBody = z.strictObject({
  issuer: nonEmptyText(2_048).meta({ description: "The issuer's identifier, or its name in the settings." }),
  subject: textUpTo(255).exactOptional().meta({ description: 'Subject to remove; absent means all of the issuer.' }),
  ...ownerProof,
});

const links = z.array(
  component('OidcLink', {
    issuer: z.string().meta({ description: "The issuer's identifier." }),
    name: z.string().nullable().meta({ description: 'Name of the issuer in the settings; null if it was removed.' }),
    subject: z.string().meta({ description: 'Id of the person at the issuer.' }),
    createdAt: timestamp,
  }),
);

export function oidcLinkRoutes(context: RouteContext) {
  const { clients, limits } = context;
  return {
    linkOidcIssuer: defineRoute(`POST ${OIDC_PATH}/link`, 'session', {
      summary: 'Link the account to an OpenID Connect issuer',
      description: [
        'The browser goes to `url` next. The link is a new way to sign in, so it needs the proof that sign-in needs.',
        'It takes effect only if the browser comes back with a session of the same account.',
      ].join(' '),
      limit: { limit: limits.signIn, per: 'ip' },
      body: linkBody,
      examples: { password: EXAMPLE_PROOF },
      data: z.object({ url: z.string().meta({ format: 'uri' }) }),
      failures: ['startOidc'],
      message: 'Link begun.',
      handle: async (request) => {
        const { body, reply } = request;
        const url = await countPasswordFailures(context, request, ({ accountId: linkAccountId, sessionId }) =>
          startFlow(context, reply, { linkAccountId, sessionId, ...body }),
        );
        return { url };
      },
    }),
    listOidcLinks: defineRoute(`GET ${OIDC_PATH}/links`, 'session', {
      summary: 'List the links of the account to OpenID Connect issuers',
      data: links,
      message: 'Successfully fetched links.',
      handle: async ({ principal: { accountId } }) => (await clients.oidc.listOidcLinks({ accountId })).links,
    }),
    unlinkOidcIssuer: defineRoute(`POST ${OIDC_PATH}/unlink`, 'session', {
      summary: 'Remove links of the account to an OpenID Connect issuer',
      description: [
        'It needs the proof that linking needs, so that a session alone cannot lock out the owner.',
        'Ends the other sessions of the account. The last way to sign in to an account without a password stays.',
      ].join(' '),
      limit: { limit: limits.signIn, per: 'ip' },
      body: unlinkBody,
      examples: { password: EXAMPLE_PROOF },
      data: z.object({ removed: z.int().min(1) }),
      failures: ['unlinkOidc'],
      message: 'Unlinked.',
      handle: (request) =>
        countPasswordFailures(context, request, (session) => clients.oidc.unlinkOidc({ ...session, ...request.body })),
    }),
  };
}
