export interface Signature {
  /** The Ed25519 signature. */
  readonly bytes: Buffer;
  /** True if BLAKE2b-512 of the file was signed instead of the file. */
  readonly isPrehashed: boolean;
  /** In minisign's format, and the id of its key; both absent for Sparkle's bare signatures. */
  readonly text?: string;
  readonly keyId?: Buffer;
  /** The part of minisign's format that vouches for the trusted comment; signify has none. */
  readonly trusted?: { readonly comment: Buffer; readonly signature: Buffer };
}

/** Of either alphabet, with line breaks: `base64` wraps its output. */
const BASE64 = /^[\w+/\s-]+={0,2}$/;
const SIGNATURE_BYTES = 64;
const MINISIGN_BYTES = 2 + 8 + SIGNATURE_BYTES;
const TRUSTED = 'trusted comment: ';

/**
 * Parses minisign's text, signify's (which has no trusted comment), either in Base64 as Tauri has
 * it, or the Base64 of 64 bytes as Sparkle has it. Returns undefined for other text.
 */
export function parseSignature(given: string): Signature | undefined {
  const decoded = Buffer.from(BASE64.test(given.trim()) ? given : '', 'base64');
  const text = [given, decoded.toString()].find((one) => one.trim().startsWith('untrusted comment:'));
  if (text === undefined) return decoded.length === SIGNATURE_BYTES ? { bytes: decoded, isPrehashed: false } : undefined;
  const [, line = '', comment, globalLine = ''] = text.trim().split(/\r?\n/);
  const packed = Buffer.from(line, 'base64');
  const algorithm = packed.toString('latin1', 0, 2);
  const isKnown = packed.length === MINISIGN_BYTES && (algorithm === 'Ed' || algorithm === 'ED');
  if (!isKnown || comment?.startsWith(TRUSTED) === false) return undefined;
  const signature = { text, keyId: packed.subarray(2, 10), isPrehashed: algorithm === 'ED', bytes: packed.subarray(10) };
  if (comment === undefined) return signature;
  const trusted = { comment: Buffer.from(comment.slice(TRUSTED.length)), signature: Buffer.from(globalLine, 'base64') };
  return { ...signature, trusted };
}
