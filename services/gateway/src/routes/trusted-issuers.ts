import {
  AUDIENCE_LENGTH_MAX,
  CLAIMS_RULE,
  EXCHANGED_KEY_LIFETIME_S,
  ISSUER_LENGTH_MAX,
  isTrustedClaims,
  PASTED_KEYS_MAX,
  TRUSTED_ISSUERS_MAX,
} from '@latchkey/contract/trusted-issuer';
import type { TrustedIssuer } from '@latchkey/proto/latchkey/identity/v1/trusted_issuer_pb';
import { z } from 'zod';
import { list } from '../routing/list.ts';
import { defineRoute, type RouteContext } from '../routing/route.ts';
import { applicationId, idOf, nonEmptyText, timestamp, twoFactorCode, wholeNumber } from '../routing/schemas.ts';
import { keyFields, RESTRICTED, RESTRICTION, scope } from './api-keys.ts';

const URL = '/api/v1/panel/trusted-issuers';
const CLAIM_VALUES = { additionalProperties: { type: ['string', 'integer', 'boolean'] } };

const jwks = z
  .object({ keys: list(z.looseObject({ kty: z.string() }), 1, PASTED_KEYS_MAX) })
  .meta({ description: 'Public keys of an issuer that the service cannot reach, a JSON Web Key Set.' });

const settings = {
  issuer: nonEmptyText(ISSUER_LENGTH_MAX).meta({
    description: 'The `iss` of its tokens: an https URL, unless `jwks` is given.',
    examples: ['https://token.actions.githubusercontent.com'],
  }),
  audience: nonEmptyText(AUDIENCE_LENGTH_MAX).meta({
    description: 'The `aud` of its tokens, or one of them.',
    examples: ['https://latchkey.acme.example'],
  }),
  claims: z
    .record(z.string(), z.unknown())
    .refine(isTrustedClaims, CLAIMS_RULE)
    .meta({
      description: 'Exact values of claims, without patterns. A token must have all of them.',
      examples: [{ repository: 'acme/editor', environment: 'production' }],
      ...CLAIM_VALUES,
    }),
  lifetimeSeconds: wholeNumber(EXCHANGED_KEY_LIFETIME_S).meta({ description: 'Lifetime of its keys.', examples: [600] }),
};

const createBody = z
  .strictObject({
    ...settings,
    ...keyFields,
    allApplications: keyFields.allApplications.optional(),
    applicationIds: keyFields.applicationIds.optional(),
    jwks: jwks.optional(),
    code: z
      .optional(twoFactorCode)
      .meta({ description: 'Code of the second factor, or a recovery code, where the account has one.' }),
  })
  .refine(({ allApplications = false, applicationIds = [] }) => allApplications === (applicationIds.length === 0), RESTRICTION)
  .meta(RESTRICTED);

const trustedIssuer = z
  .object({
    id: idOf('trustedIssuer', 'Id of the trusted issuer.'),
    name: z.string().meta({ examples: ['GitHub Actions'] }),
    ...settings,
    claims: z.record(z.string(), z.unknown()).meta(CLAIM_VALUES),
    jwks: jwks.nullable(),
    scopes: z.array(scope),
    allApplications: z.boolean(),
    applicationIds: z.array(applicationId),
    createdAt: timestamp,
  })
  .meta({ id: 'TrustedIssuer', description: 'An issuer whose tokens are exchanged for management API keys.' });

const params = z.object({ id: idOf('trustedIssuer', 'Id, from `listTrustedIssuers`.') });

export const trustedIssuerRoutes = ({ clients: { trustedIssuers } }: RouteContext) => ({
  listTrustedIssuers: defineRoute(`GET ${URL}`, 'session', {
    summary: 'List trusted issuers',
    isLarge: true,
    data: z.array(trustedIssuer),
    message: 'Successfully fetched trusted issuers.',
    handle: async ({ principal: { accountId } }) => {
      return (await trustedIssuers.listTrustedIssuers({ accountId })).trustedIssuers.map(toRecord);
    },
  }),
  createTrustedIssuer: defineRoute(`POST ${URL}`, 'session', {
    summary: 'Trust an issuer',
    description: `Its tokens with these claims can be exchanged for keys with these rights (\`exchangeToken\`). An account has at most ${TRUSTED_ISSUERS_MAX}. With two-factor authentication on, \`code\` is needed, and used up.`,
    body: createBody,
    examples: {
      github: {
        name: 'GitHub Actions',
        issuer: 'https://token.actions.githubusercontent.com',
        audience: 'https://latchkey.acme.example',
        claims: { repository: 'acme/editor', environment: 'production' },
        scopes: ['files:upload', 'releases:write'],
        allApplications: true,
        lifetimeSeconds: 600,
      },
    },
    data: trustedIssuer,
    message: 'Issuer trusted.',
    handle: async ({ principal: { accountId }, body }) => {
      const { claims, jwks: keys, allApplications = false, applicationIds = [], ...plain } = body;
      const created = await trustedIssuers.createTrustedIssuer({
        ...{ accountId, ...plain, allApplications, applicationIds, claims: JSON.stringify(claims) },
        ...(keys && { jwks: JSON.stringify(keys) }),
      });
      return toRecord(created.trustedIssuer as TrustedIssuer);
    },
  }),
  deleteTrustedIssuer: defineRoute(`DELETE ${URL}/:id`, 'session', {
    summary: 'Stop trusting an issuer',
    description: 'Its keys are revoked, from the next request on.',
    params,
    message: 'Issuer no longer trusted.',
    handle: async ({ principal: { accountId }, params: { id } }) => {
      await trustedIssuers.deleteTrustedIssuer({ accountId, trustedIssuerId: id });
    },
  }),
});

function toRecord({ claims, jwks, ...record }: TrustedIssuer) {
  return { ...record, claims: JSON.parse(claims), jwks: jwks && JSON.parse(jwks) };
}
