import { parseDictionary } from 'structured-headers';
import { z } from 'zod';
import { errors } from '../errors.ts';
import { currentRequest } from '../request-context.ts';

const SHA256_BYTES = 32;

/** The SHA-256 of digests (RFC 9530, RFC 9651); empty without one, undefined if malformed. */
function parseContentDigest(field: string): Buffer | undefined {
  try {
    const digests = new Map([...parseDictionary(field)].map(([name, [value]]) => [name, value]));
    if (![...digests.values()].every((value) => value instanceof ArrayBuffer)) return undefined;
    const sha256 = digests.get('sha-256') as ArrayBuffer | undefined;
    return sha256 === undefined || sha256.byteLength === SHA256_BYTES ? Buffer.from(sha256 ?? new ArrayBuffer(0)) : undefined;
  } catch {
    return undefined;
  }
}

/** An algorithm with a byte sequence (RFC 9651, 3.2 and 3.3.5). */
const DIGEST = '[a-z*][a-z0-9_.*-]*=:([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}(==)?|[A-Za-z0-9+/]{3}=?)?:';

const contentDigest = z
  .string()
  .transform((text, ctx) => {
    const sha256 = parseContentDigest(text);
    if (!sha256)
      ctx.issues.push({ code: 'custom', message: 'must be RFC 9530 digests, with a sha-256 of 32 bytes', input: text });
    return sha256 ?? z.NEVER;
  })
  .meta({
    description: 'Digests of the body (RFC 9530). A body with another SHA-256 is rejected; other algorithms are ignored.',
    pattern: `^(${DIGEST}( *, *${DIGEST})*)?$`,
    examples: ['sha-256=:UhF+2GR+/V3RZgdu3lQR0exGg/IAOsLllxtfDhJDRhY=:'],
  });

/** The header of an upload, parsed: empty if it has no SHA-256. */
export const digestHeaders = z.object({ 'content-digest': contentDigest.optional() });

/**
 * The digest of an upload with an idempotency key stands for its body.
 *
 * @throws `content_digest_required`
 */
export function requireDigest({ 'content-digest': digest }: z.output<typeof digestHeaders>): void {
  if (currentRequest()?.idempotency && !digest?.byteLength) throw errors.content_digest_required();
}
