import { TOKEN_EXCHANGE_GRANT, TOKEN_TYPES } from '@latchkey/contract/trusted-issuer';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { z } from 'zod';
import { component, defineRoute, type RouteContext } from '../routing/route.ts';
import { anyText } from '../routing/schemas.ts';

const body = z.object({
  grant_type: z.string().meta({ description: `\`${TOKEN_EXCHANGE_GRANT}\`.`, examples: [TOKEN_EXCHANGE_GRANT] }),
  // An empty parameter counts as absent.
  subject_token: z
    .string()
    .meta({ minLength: 1, description: 'JWT of a trusted issuer, at most 10 minutes old. It is accepted once.' }),
  subject_token_type: z.enum([TOKEN_TYPES.jwt, TOKEN_TYPES.idToken]),
  audience: anyText.optional().meta({
    description: 'The `aud` of the token, or the id of a trusted issuer, which is needed if several accept the token.',
    examples: ['https://latchkey.acme.example'],
  }),
  scope: anyText.optional().meta({
    description: 'Scopes of the key, separated by spaces: a part of those of the trusted issuer, which are the default.',
    examples: ['files:upload'],
  }),
  requested_token_type: z.literal(TOKEN_TYPES.accessToken).optional(),
});

const token = component('ExchangedToken', {
  access_token: z.string().meta({ description: 'A management API key.', examples: ['lk_mgmt_4fT9bQxZ7mKw2LsR_…'] }),
  issued_token_type: z.literal(TOKEN_TYPES.accessToken),
  token_type: z.literal('Bearer'),
  expires_in: z.int().meta({ description: 'Seconds until the key expires.', examples: [600] }),
  scope: z.string().meta({ description: 'Scopes of the key.', examples: ['files:upload releases:write'] }),
});

export const tokenRoutes = ({ clients: { trustedIssuers }, limits }: RouteContext) => ({
  exchangeToken: defineRoute('POST /api/v1/auth/token', 'public', {
    summary: 'Exchange a token for a management API key',
    description: [
      'OAuth 2.0 Token Exchange (RFC 8693): a JWT of a trusted issuer becomes a key that expires soon.',
      'Errors are those of RFC 6749. A token that is not valid or not accepted is `invalid_request`; an `audience` that names no or several trusted issuers is `invalid_target`, a `scope` beyond its scopes `invalid_scope`.',
    ].join(' '),
    isOAuth: true,
    // Required by RFC 6749, 5.1.
    headersAlways: { Pragma: 'no-cache' },
    limit: { limit: limits.tokenExchange, per: 'ip' },
    body,
    data: token,
    handle: async ({ body: { subject_token: subjectToken, audience, scope = '' } }) => {
      const scopes = scope.split(' ').filter((name) => name !== '');
      const request = { subjectToken, scopes, ...(audience !== undefined && { audience }) };
      const exchanged = await trustedIssuers.exchangeToken(request, { timeoutMs: DEADLINES_MS.gatewayIssuer });
      return {
        access_token: exchanged.accessToken,
        issued_token_type: TOKEN_TYPES.accessToken,
        token_type: 'Bearer',
        expires_in: exchanged.expiresInSeconds,
        scope: exchanged.scopes.join(' '),
      };
    },
  }),
});
