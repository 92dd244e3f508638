import { createHash } from 'node:crypto';
import { parseSignature } from '@latchkey/kit/crypto/artifact-signature';
import { DomainError } from '@latchkey/kit/errors/errors';
import type { FilesContext } from '../../context.ts';
import { errors } from '../../proto-errors.ts';
import type { ApplicationRef } from '../application/owned-application.ts';
import { objectKey } from '../object-store/object-store.ts';
import { requireFileRef } from './file.ts';
import { type Digests, insertDigests, selectForRelease } from './inspect-file.store.ts';
import { findSigningKey } from './verify-signature.ts';

/** Largest file whose signature may need all its bytes in memory. Others need a prehashed one. */
const WHOLE_BYTES_MAX = 256 * 1024 * 1024;

/**
 * Reads a file for a release. Its digests are read once and stored; a signature that is not
 * prehashed needs all bytes each time.
 *
 * @throws `application_not_found`, `file_not_found`, and `queue_full` if too many files wait
 */
export async function inspectFile(ctx: FilesContext, given: ApplicationRef, asked: Question) {
  const ref = await requireFileRef(ctx, given, asked.fileId);
  for (let former: string | undefined; ; ) {
    const file = await selectForRelease(ctx.db, ref.applicationId, ref.fileId);
    if (!file) throw errors.file_not_found();
    try {
      return await readForRelease(ctx, { ...ref, ...file }, asked);
    } catch (err) {
      // The object is gone if the file was replaced before its turn came.
      const isGone = err instanceof DomainError && err.reason === 'file_not_found';
      if (!isGone || file.objectId === former) throw err;
      former = file.objectId;
    }
  }
}

interface Question {
  readonly fileId: string;
  readonly signature: string;
  readonly publicKeys: readonly string[];
}

type FileToRead = NonNullable<Awaited<ReturnType<typeof selectForRelease>>> & {
  readonly accountId: string;
  readonly applicationId: string;
  readonly fileId: string;
};

async function readForRelease(ctx: FilesContext, file: FileToRead, asked: Question) {
  const { applicationId, sha512, blake2b512 } = file;
  const key = objectKey(applicationId, file.objectId);
  const stored = sha512 && blake2b512 ? { sha512, blake2b512 } : undefined;
  const digests = stored ?? (await inTurn(ctx, file.accountId, () => readDigests(ctx, key, file)));
  const signature = asked.publicKeys.length > 0 ? parseSignature(asked.signature) : undefined;
  const verify = (signed: Buffer) => (signature ? findSigningKey(signature, asked.publicKeys, signed) : undefined);
  let verifiedKey: string | undefined;
  if (signature?.isPrehashed) verifiedKey = await verify(digests.blake2b512);
  else if (signature && file.size <= WHOLE_BYTES_MAX)
    verifiedKey = await inTurn(ctx, file.accountId, async () => verify(await readWhole(ctx, key, file.size)));
  return {
    byteSize: BigInt(file.size),
    checksum: new Uint8Array(file.checksum),
    sha512: new Uint8Array(digests.sha512),
    verifiedKey: verifiedKey ?? '',
  };
}

function inTurn<T>({ inspections }: FilesContext, accountId: string, read: () => Promise<T>): Promise<T> {
  inspections.check(accountId);
  return inspections.run(accountId, read);
}

async function readDigests(ctx: FilesContext, key: string, file: FileToRead): Promise<Digests> {
  const [sha512, blake2b512] = [createHash('sha512'), createHash('blake2b512')];
  for await (const chunk of await openObject(ctx, key)) {
    sha512.update(chunk);
    blake2b512.update(chunk);
  }
  const digests = { sha512: sha512.digest(), blake2b512: blake2b512.digest() };
  await insertDigests(ctx.db, file, digests);
  return digests;
}

async function readWhole(ctx: FilesContext, key: string, byteSize: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(byteSize);
  let length = 0;
  for await (const chunk of await openObject(ctx, key)) {
    bytes.set(chunk, length);
    length += chunk.byteLength;
  }
  return bytes.subarray(0, length);
}

async function openObject(ctx: FilesContext, key: string): Promise<AsyncIterable<Uint8Array>> {
  const body = await ctx.store.read(key);
  if (!body) throw errors.file_not_found();
  return body;
}
