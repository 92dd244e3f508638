import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { realpath, rename, rm, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import type { Latchkey, StoredFile } from '@latchkey/client';
import { FILE_NAME } from '@latchkey/contract/file-name';
import { formatBytes } from '../output/text.ts';
import type { Context } from '../program/context.ts';
import { CliError, toOutcome } from '../program/errors.ts';
import { stopSignal } from '../program/signals.ts';
import { UploadProgress } from '../upload/upload-progress.ts';

export interface DownloadOptions {
  readonly app: string;
  readonly output?: string;
  readonly force?: boolean;
}

/**
 * Downloads next to the target, and renames that once its SHA-256 is that of the upload. `-` is
 * standard output.
 */
export async function downloadFile(
  context: Context,
  client: Latchkey,
  applicationId: string,
  file: StoredFile,
  { output, force = false }: DownloadOptions,
): Promise<string> {
  const path = output ?? localPath(file.displayName);
  const target = path === '-' ? undefined : await findTarget(path, force);
  const { url } = await client.files.createDownloadUrl(applicationId, file.id);
  const signal = stopSignal();
  const progress = new UploadProgress(context, file.displayName, file.displayName.length, 'waiting');
  const chunks = verify(readBytes(url, signal), file, (bytes) => progress.update(bytes, file.byteSize));
  try {
    if (target === undefined) await pipeline(chunks, context.io.stdout, { end: false });
    else await save(chunks, target);
  } catch (err) {
    progress.clear();
    throw signal.aborted ? new CliError('failed', 'Interrupted. Run it again to download the file.') : err;
  }
  progress.end(`downloaded, ${formatBytes(file.byteSize)}`);
  return path;
}

/** The path in this folder for a name that the server gave. A name like `-` is not an option. */
function localPath(name: string): string {
  if (!FILE_NAME.test(name)) throw new CliError('usage', `The server calls the file "${name}". Add --output with another name.`);
  return name.startsWith('-') ? `./${name}` : name;
}

/** The file to replace or create, behind symbolic links. Devices and folders are rejected. */
async function findTarget(path: string, force: boolean): Promise<string> {
  const found = await stat(path).catch(() => undefined);
  if (!found) return path;
  if (!found.isFile()) throw new CliError('usage', `${path} is not a file. Use --output for another path.`);
  if (!force) throw new CliError('usage', `${path} exists. Use --force to replace it, or --output for another path.`);
  return realpath(path);
}

async function save(chunks: AsyncIterable<Uint8Array>, path: string): Promise<void> {
  const part = `${path}.${randomUUID().slice(0, 8)}.part`;
  try {
    await pipeline(chunks, createWriteStream(part, { flags: 'wx' }));
    await rename(part, path);
  } catch (err) {
    await rm(part, { force: true });
    throw err;
  }
}

/** Passes on bytes. @throws {CliError} at their end, if they are not those of the upload */
async function* verify(chunks: AsyncIterable<Uint8Array>, file: StoredFile, onBytes: (total: number) => void) {
  const hash = createHash('sha256');
  let total = 0;
  for await (const chunk of chunks) {
    hash.update(chunk);
    yield chunk;
    total += chunk.byteLength;
    onBytes(total);
  }
  if (hash.digest('hex') !== file.checksum)
    throw new CliError('failed', `${file.displayName} arrived with another SHA-256. Run it again.`);
}

/** `fetch` gives up after 300 s without a byte. */
async function* readBytes(url: string, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
  try {
    const response = await fetch(url, { signal });
    const { ok, status, body } = response;
    if (!ok || !body) throw new CliError(toOutcome(status), `The download failed with HTTP ${status}. Run it again.`);
    yield* body;
  } catch (err) {
    if (err instanceof CliError) throw err;
    // The message of `fetch` itself names no reason.
    const { message } = ((err as Error).cause ?? err) as Error;
    throw new CliError('unreachable', `The download failed: ${message}. Run it again.`);
  }
}
