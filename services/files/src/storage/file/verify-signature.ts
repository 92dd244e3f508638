import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { promisify } from 'node:util';
import type { Signature } from '@latchkey/kit/crypto/artifact-signature';

/** Prefix of an Ed25519 public key in DER (RFC 8410). */
const SPKI = Buffer.from('302a300506032b6570032100', 'hex');
const PUBLIC_KEY_BYTES = 2 + 8 + 32;

/**
 * Finds the key that made a signature.
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
