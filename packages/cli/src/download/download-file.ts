import { createHash } from 'node:crypto';
import { access, open, rename, rm } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Latchkey, StoredFile } from '@latchkey/client';
import type { Context } from '../context.ts';
import { CliError, toOutcome } from '../errors.ts';
import { formatBytes } from '../output/text.ts';
import { abortOnSignal } from '../signals.ts';
import { UploadProgress } from '../upload/upload-progress.ts';

export interface DownloadOptions {
  readonly app: string;
  readonly output?: string;
  readonly force?: boolean;
}

/** Downloads to `<path>.part`, and renames that once its SHA-256 is that of the upload. */
export async function downloadFile(
  context: Context,
  client: Latchkey,
  applicationId: string,
  file: StoredFile,
  { output, force = false }: DownloadOptions,
): Promise<string> {
  // A name with a folder in it must not lead out of this one.
  const path = output ?? basename(file.displayName);
  const exists = await access(path).then(
    () => true,
    () => false,
  );
  if (exists && !force) throw new CliError('usage', `${path} exists. Use --force to replace it, or --output for another path.`);
  const { url } = await client.files.createDownloadUrl(applicationId, file.id);
  const { signal, release } = abortOnSignal();
  const progress = new UploadProgress(context, file.displayName, file.displayName.length, 'waiting');
  const part = `${path}.part`;
  try {
    await save(url, part, { file, signal, onBytes: (bytes) => progress.update(bytes, file.byteSize) });
    await rename(part, path);
  } catch (err) {
    progress.clear();
    await rm(part, { force: true });
    throw signal.aborted ? new CliError('failed', 'Interrupted. Run it again to download the file.') : err;
  } finally {
    release();
  }
  progress.end(`downloaded, ${formatBytes(file.byteSize)}`);
  return path;
}

interface SaveOptions {
  readonly file: StoredFile;
  readonly signal: AbortSignal;
  readonly onBytes: (bytes: number) => void;
}

async function save(url: string, path: string, { file, signal, onBytes }: SaveOptions): Promise<void> {
  const hash = createHash('sha256');
  const target = await open(path, 'w');
  try {
    let bytes = 0;
    for await (const chunk of readBytes(url, signal)) {
      hash.update(chunk);
      await target.writeFile(chunk);
      bytes += chunk.byteLength;
      onBytes(bytes);
    }
  } finally {
    await target.close();
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
