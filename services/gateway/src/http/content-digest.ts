/** Pieces of a structured field (RFC 9651, 3), none of which can match the same text in two ways. */
const KEY = '[a-z*][a-z0-9_.*-]*';
const NUMBER = '-?\\d{1,12}\\.\\d{1,3}|-?\\d{1,15}';
const TEXT = '"(?:[ !#-\\[\\]-~]|\\\\["\\\\])*"';
const TOKEN = "[A-Za-z*][A-Za-z0-9!#$%&'*+.^_`|~:/-]*";
const BYTES = ':[A-Za-z0-9+/]*={0,2}:';
const BARE = `(?:${NUMBER}|${TEXT}|${TOKEN}|${BYTES}|\\?[01]|@-?\\d{1,15})`;
const PARAMETERS = `(?:; *${KEY}(?:=${BARE})?)*`;
const INNER_LIST = `\\( *(?:${BARE}${PARAMETERS}(?: +${BARE}${PARAMETERS})*)? *\\)`;
const MEMBER = new RegExp(`(${KEY})(?:=(${BARE}|${INNER_LIST}))?${PARAMETERS}[ \\t]*(,|$)[ \\t]*`, 'y');

/** 32 bytes in base64. */
const SHA256 = /^:([A-Za-z0-9+/]{43}=?):$/;

/**
 * The SHA-256 in a `Content-Digest` header (RFC 9530), a dictionary of digests by algorithm. Other algorithms are passed over.
 *
 * @param field the header's value, of which several make one list
 * @returns 32 bytes, empty where there is no SHA-256, and undefined where the field is malformed or its SHA-256 is none
 */
export function parseContentDigest(field: string): Buffer | undefined {
  let sha256: string | undefined;
  const text = field.trim();
  MEMBER.lastIndex = 0;
  let separator = '';
  while (MEMBER.lastIndex < text.length) {
    const match = MEMBER.exec(text);
    if (!match) return undefined;
    // Of a key given twice, the last counts.
    if (match[1] === 'sha-256') sha256 = match[2] ?? '';
    separator = match[3] as string;
  }
  if (separator === ',') return undefined;
  if (sha256 === undefined) return Buffer.alloc(0);
  const [, base64] = SHA256.exec(sha256) ?? [];
  return base64 === undefined ? undefined : Buffer.from(base64, 'base64');
}
