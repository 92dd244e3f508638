import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { type Latchkey, LatchkeyError, type StoredFile } from '@latchkey/client';
import { resolveApplication } from '../lookup/resolve.ts';
import { formatBytes } from '../output/text.ts';
import type { Context } from '../program/context.ts';
import { CliError, toCliError } from '../program/errors.ts';
import { createRateLimitRetry } from '../program/rate-limit-retry.ts';
import { stopSignal } from '../program/signals.ts';
import { hashFile } from './hash-file.ts';
import { UploadProgress } from './upload-progress.ts';

export interface UploadCommandOptions {
  readonly app: string;
  readonly name?: string;
  readonly replace?: boolean;
}

interface LocalFile {
  readonly path: string;
  readonly name: string;
  readonly byteSize: number;
}

/** Uploads one file after the other, as the server takes one at a time; a failed one stops none. */
export async function uploadFiles(context: Context, paths: readonly string[], options: UploadCommandOptions): Promise<void> {
  const files = await readLocalFiles(paths, options.name);
  const client = await context.client();
  const { id: applicationId } = await resolveApplication(client, options.app);
  const existing = options.replace ? await listByName(client, applicationId) : new Map<string, StoredFile>();
  const signal = stopSignal();
  const nameWidth = Math.max(...files.map(({ name }) => name.length));
  const results = [];
  for (const file of files) {
    const { name, path, byteSize } = file;
    const progress = new UploadProgress(context, name, nameWidth);
    const retry = createRateLimitRetry((line) => progress.wait(line), signal);
    const onProgress = ({ sentBytes }: { readonly sentBytes: number }) => progress.update(sentBytes, byteSize);
    const former = existing.get(name);
    const sending = { name, signal, onProgress, replace: former !== undefined };
    try {
      const unchanged = former && (await findUnchanged(former, file));
      const stored = unchanged ?? (await retry(() => client.files.upload(applicationId, path, sending)));
      progress.end(`${unchanged ? 'unchanged' : former ? 'replaced' : 'uploaded'}, ${formatBytes(byteSize)}`);
      results.push({ name, id: stored.id, byteSize: stored.byteSize, checksum: stored.checksum });
    } catch (err) {
      // The error that ends the command is printed by itself.
      if (signal.aborted || files.length === 1) progress.clear();
      if (signal.aborted) throw new CliError('failed', 'Interrupted. Run it again with --replace to upload the rest.');
      const error = toUploadError(err);
      if (files.length === 1) throw error;
      progress.end(`failed: ${error.message}`);
    }
  }
  context.print(results, results.map(({ checksum, name }) => `${checksum}  ${name}`).join('\n'));
  const failed = files.length - results.length;
  if (failed > 0)
    throw new CliError('failed', `${failed} of ${files.length} files failed. Correct this, and run it again with --replace.`);
}

function toUploadError(err: unknown): CliError {
  const name = err instanceof LatchkeyError && err.details.find(({ path }) => path === 'query.fileName');
  if (name) return new CliError('usage', `The name ${name.message}. Upload it alone, with --name.`);
  return toCliError(err);
}

/** Finds every problem before anything is sent. */
async function readLocalFiles(paths: readonly string[], name: string | undefined): Promise<readonly LocalFile[]> {
  if (name !== undefined && paths.length > 1)
    throw new CliError('usage', '--name is for a single file. Upload the others separately.');
  const files = await Promise.all(
    paths.map(async (path) => {
      const stats = await stat(path).catch(() => undefined);
      if (!stats) throw new CliError('usage', `${path} does not exist or can't be read. Check the path.`);
      if (!stats.isFile()) throw new CliError('usage', `${path} is not a file. Name files only.`);
      return { path, name: name ?? basename(path), byteSize: stats.size };
    }),
  );
  const twice = files.find((file, i) => files.findIndex((other) => other.name === file.name) !== i);
  if (twice) throw new CliError('usage', `Two files are called ${twice.name}. Upload one of them with --name.`);
  return files;
}

async function listByName(client: Latchkey, applicationId: string): Promise<ReadonlyMap<string, StoredFile>> {
  const byName = new Map<string, StoredFile>();
  for await (const file of client.files.iterate(applicationId)) byName.set(file.displayName, file);
  return byName;
}

async function findUnchanged(stored: StoredFile, { path, byteSize }: LocalFile): Promise<StoredFile | undefined> {
  return stored.byteSize === byteSize && (await hashFile(path)) === stored.checksum ? stored : undefined;
}
