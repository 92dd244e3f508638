import type { ServerMetadata } from 'openid-client';
import { z } from 'zod';
import { IssuerCallError } from './issuer-fetch.ts';
import { isTrustworthy } from './issuer-settings.ts';

const endpoint = z.string().refine((text) => URL.canParse(text) && isTrustworthy(new URL(text)));
const names = z.array(z.string()).optional();

/** The metadata that a sign-in uses (OpenID Connect Discovery, 3; RFC 9207). openid-client checks the issuer. */
const schema = z.object({
  authorization_endpoint: endpoint,
  token_endpoint: endpoint,
  jwks_uri: endpoint,
  userinfo_endpoint: endpoint.optional(),
  id_token_signing_alg_values_supported: names,
  token_endpoint_auth_methods_supported: names,
  authorization_response_iss_parameter_supported: z.boolean().optional(),
});

/**
 * Checks what an issuer says about itself, before it is remembered for an hour.
 *
 * @throws IssuerCallError which names the first field that is missing or not valid, and never its value
 */
export function checkMetadata(metadata: Readonly<ServerMetadata>): void {
  const { error } = schema.safeParse(metadata);
  if (error) throw new IssuerCallError(`the metadata has no valid ${error.issues[0]?.path[0]?.toString()}`);
}
