import { createHash } from 'node:crypto';
import type { FilesContext } from '../../context.ts';
import { errors } from '../../errors.ts';
import type { ApplicationRef } from '../application/owned-application.ts';
import { objectKey } from '../object-store/object-store.ts';
import { parseFileRef } from './file.ts';
import { type Digests, insertDigests, selectForRelease } from './inspect-file.store.ts';
import { findSigningKey, parseSignature } from './signature.ts';

/**
 * Reads a file for a release. Its digests are read once and stored; a signature that is not
 * prehashed needs all bytes each time.
 *
 * @throws `application_not_found`, `file_not_found`, and `queue_full` if too many files wait
 */
export async function inspectFile(
  ctx: FilesContext,
  given: ApplicationRef,
  asked: { readonly fileId: string; readonly signature: string; readonly publicKeys: readonly string[] },
) {
  const { applicationId, fileId } = await parseFileRef(ctx, given, asked.fileId);
  const file = await selectForRelease(ctx.db, applicationId, fileId);
  if (!file) throw errors.file_not_found();
  const { sha512, blake2b512 } = file;
  const key = objectKey(applicationId, fileId);
  const stored = sha512 && blake2b512 ? { sha512, blake2b512 } : undefined;
  const digests = stored ?? (await inTurn(ctx, applicationId, () => readDigests(ctx, key, fileId)));
  const signature = asked.publicKeys.length > 0 ? parseSignature(asked.signature) : undefined;
  const verifiedKey = signature?.isPrehashed
    ? findSigningKey(signature, asked.publicKeys, digests.blake2b512)
    : signature &&
      (await inTurn(ctx, applicationId, async () => findSigningKey(signature, asked.publicKeys, await readAll(ctx, key))));
  return {
    byteSize: BigInt(file.size),
    checksum: new Uint8Array(file.checksum),
    sha512: new Uint8Array(digests.sha512),
    verifiedKey: verifiedKey ?? '',
  };
}

function inTurn<T>({ inspections }: FilesContext, applicationId: string, read: () => Promise<T>): Promise<T> {
  inspections.check(applicationId);
  return inspections.run(applicationId, read);
}

async function readDigests(ctx: FilesContext, key: string, fileId: string): Promise<Digests> {
  const [sha512, blake2b512] = [createHash('sha512'), createHash('blake2b512')];
  for await (const chunk of await openObject(ctx, key)) {
    sha512.update(chunk);
    blake2b512.update(chunk);
  }
  const digests = { sha512: sha512.digest(), blake2b512: blake2b512.digest() };
  await insertDigests(ctx.db, fileId, digests);
  return digests;
}

async function readAll(ctx: FilesContext, key: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of await openObject(ctx, key)) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

async function openObject(ctx: FilesContext, key: string): Promise<AsyncIterable<Uint8Array>> {
  const body = await ctx.store.read(key);
  if (!body) throw errors.file_not_found();
  return body;
}
