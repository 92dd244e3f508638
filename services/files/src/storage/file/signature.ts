import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { promisify } from 'node:util';

interface Signature {
  /** Id of the minisign key; undefined for a bare signature, as Sparkle has them. */
  readonly keyId: Buffer | undefined;
  /** True if BLAKE2b-512 of the file was signed instead of the file. */
  readonly isPrehashed: boolean;
  readonly bytes: Buffer;
  /** The part of minisign's format that vouches for the trusted comment. */
  readonly trusted: { readonly comment: Buffer; readonly signature: Buffer } | undefined;
}

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const SIGNATURE_BYTES = 64;
const MINISIGN_BYTES = 2 + 8 + SIGNATURE_BYTES;
const TRUSTED = 'trusted comment: ';

/**
 * Parses minisign's text, signify's (which has no trusted comment), either in Base64 as Tauri has
 * it, or the Base64 of 64 bytes as Sparkle has it. Returns undefined for other text.
 */
export function parseSignature(text: string): Signature | undefined {
  const trimmed = text.trim();
  if (trimmed.startsWith('untrusted comment:')) return parseMinisign(trimmed);
  if (!BASE64.test(trimmed)) return undefined;
  const bytes = Buffer.from(trimmed, 'base64');
  if (bytes.length === SIGNATURE_BYTES) return { keyId: undefined, isPrehashed: false, bytes, trusted: undefined };
  const decoded = bytes.toString('utf8').trim();
  return decoded.startsWith('untrusted comment:') ? parseMinisign(decoded) : undefined;
}

function parseMinisign(text: string): Signature | undefined {
  const [, line = '', comment, globalLine] = text.split(/\r?\n/);
  const bytes = Buffer.from(line, 'base64');
  const algorithm = bytes.toString('latin1', 0, 2);
  if (bytes.length !== MINISIGN_BYTES || (algorithm !== 'Ed' && algorithm !== 'ED')) return undefined;
  const signature = bytes.subarray(10);
  const isPrehashed = algorithm === 'ED';
  const keyId = bytes.subarray(2, 10);
  if (comment === undefined) return { keyId, isPrehashed, bytes: signature, trusted: undefined };
  if (!comment.startsWith(TRUSTED)) return undefined;
  const trusted = { comment: Buffer.from(comment.slice(TRUSTED.length)), signature: Buffer.from(globalLine ?? '', 'base64') };
  return { keyId, isPrehashed, bytes: signature, trusted };
}

/** Prefix of an Ed25519 public key in DER (RFC 8410). */
const SPKI = Buffer.from('302a300506032b6570032100', 'hex');
const PUBLIC_KEY_BYTES = 2 + 8 + 32;

/**
 * Finds the key that a signature is of.
 *
 * @param publicKeys minisign public keys in Base64
 * @param signed the file, or its BLAKE2b-512 if the signature is prehashed
 * @returns the key, or undefined if none verifies the signature and its trusted comment
 */
export async function findSigningKey(
  signature: Signature,
  publicKeys: readonly string[],
  signed: Buffer,
): Promise<string | undefined> {
  for (const text of publicKeys) if (await isSignedBy(signature, Buffer.from(text, 'base64'), signed)) return text;
  return undefined;
}

async function isSignedBy({ keyId, bytes, trusted }: Signature, publicKey: Buffer, signed: Buffer): Promise<boolean> {
  if (publicKey.length !== PUBLIC_KEY_BYTES) return false;
  if (keyId && !keyId.equals(publicKey.subarray(2, 10))) return false;
  const key = createPublicKey({ key: Buffer.concat([SPKI, publicKey.subarray(10)]), format: 'der', type: 'spki' });
  if (!(await verifyInThread(null, signed, key, bytes))) return false;
  return !trusted || verifyInThread(null, Buffer.concat([bytes, trusted.comment]), key, trusted.signature);
}

/** In another thread: a file takes hundreds of milliseconds. */
const verifyInThread = promisify(verify) as (
  algorithm: null,
  data: Buffer,
  key: KeyObject,
  signature: Buffer,
) => Promise<boolean>;
