import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { Latchkey, StoredFile, UploadedFile, UploadOptions } from '@latchkey/client';
import { CliError } from '../program/errors.ts';

/** The file on the server, if the local one has the same bytes. */
export async function findUnchanged(
  stored: StoredFile,
  { path, byteSize }: { readonly path: string; readonly byteSize: number },
): Promise<StoredFile | undefined> {
  if (stored.byteSize !== byteSize) return undefined;
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex') === stored.checksum ? stored : undefined;
}

interface Replacement {
  readonly path: string;
  readonly former: StoredFile;
  readonly options: UploadOptions;
}

/** Uploads under another name first, so that a failed upload loses nothing. */
export async function replaceFile(client: Latchkey, applicationId: string, replacement: Replacement): Promise<UploadedFile> {
  const { path, former, options } = replacement;
  const temporaryName = `new-${randomBytes(6).toString('hex')}`;
  const uploaded = await client.files.upload(applicationId, path, { ...options, name: temporaryName, resume: false });
  try {
    await client.files.delete(applicationId, former.id);
    await client.files.rename(applicationId, uploaded.id, former.displayName);
  } catch (err) {
    const reason = err instanceof Error ? err.message : String(err);
    const next = `Delete ${former.displayName} if it is still there, and rename ${temporaryName} to it`;
    throw new CliError('failed', `The new ${former.displayName} is stored as ${temporaryName}: ${reason} ${next}.`);
  }
  return uploaded;
}
