import { parseDictionary } from 'structured-headers';

const SHA256_BYTES = 32;

/**
 * The SHA-256 in a `Content-Digest` header (RFC 9530), a dictionary of digests by algorithm (RFC 9651). Other algorithms are ignored.
 *
 * @param field the header's value; several headers are one list
 * @returns 32 bytes, empty without a SHA-256, and undefined for a malformed field or SHA-256
 */
export function parseContentDigest(field: string): Buffer | undefined {
  try {
    const sha256 = parseDictionary(field).get('sha-256');
    if (!sha256) return Buffer.alloc(0);
    const [digest] = sha256;
    return digest instanceof ArrayBuffer && digest.byteLength === SHA256_BYTES ? Buffer.from(digest) : undefined;
  } catch {
    return undefined;
  }
}
