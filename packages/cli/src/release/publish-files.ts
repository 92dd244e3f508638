import { readFile, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Latchkey, Release, ReleaseArtifact } from '@latchkey/client';
import { artifactKey } from '@latchkey/contract/artifact';
import { guessArtifact } from '@latchkey/contract/guess-artifact';
import { isSemver, RELEASE_NOTES_MAX, SEMVER_RULE } from '@latchkey/contract/release';
import { resolveApplication } from '../lookup/resolve.ts';
import type { Context } from '../program/context.ts';
import { CliError } from '../program/errors.ts';
import { createRateLimitRetry } from '../program/rate-limit-retry.ts';
import { stopSignal } from '../program/signals.ts';
import { hashFile } from '../upload/hash-file.ts';
import { UploadProgress } from '../upload/upload-progress.ts';
import { readNotes, readVersion } from './release-text.ts';

export interface PublishOptions {
  readonly app: string;
  readonly channel: string;
  readonly releaseVersion?: string;
  readonly notes?: string;
  readonly rollout: number;
  readonly draft?: boolean;
}

interface LocalArtifact extends Omit<ReleaseArtifact, 'fileId'> {
  readonly path: string;
}

const SIGNATURE = /\.(?:sig|minisig)$/;
const SKIPPED = /\.(?:ya?ml|blockmap|txt)$/;

/**
 * Uploads files and publishes them. A repetition goes on with the draft and the files it finds, and
 * changes nothing once they are published.
 */
export async function publishFiles(context: Context, paths: readonly string[], options: PublishOptions): Promise<void> {
  const artifacts = await readArtifacts(paths);
  const version = options.releaseVersion ?? findVersion(artifacts);
  if (!isSemver(version)) throw new CliError('usage', `The version ${version} ${SEMVER_RULE}. Set it with --release-version.`);
  const notes = options.notes === undefined ? '' : readNotes(await readText(options.notes), version);
  if (Array.from(notes).length > RELEASE_NOTES_MAX)
    throw new CliError('usage', `The notes are longer than ${RELEASE_NOTES_MAX} characters. Shorten them.`);
  const client = await context.client();
  const { id: applicationId } = await resolveApplication(client, options.app);
  const uploaded = await uploadArtifacts(context, client, applicationId, artifacts);
  const { channel, rollout: rolloutPercent } = options;
  const found = (await client.releases.list(applicationId)).find(
    (other) => other.version === version && other.channel === channel,
  );
  if (found?.status === 'published' && !options.draft && hasFiles(found, uploaded)) {
    context.print(found, `${version} of ${channel} is already published from these files (${found.id}).`);
    return;
  }
  const content = { version, channel, notes, rolloutPercent, artifacts: uploaded };
  const draft = await (found?.status === 'draft'
    ? client.releases.update(found.id, content)
    : client.releases.create(applicationId, content));
  const release = options.draft ? draft : await client.releases.publish(draft.id);
  context.print(release, `${options.draft ? 'Saved a draft of' : 'Published'} ${version} to ${channel} (${release.id}).`);
}

/** Finds every problem before anything is sent. */
async function readArtifacts(paths: readonly string[]): Promise<LocalArtifact[]> {
  const folders = await Promise.all(paths.map((path) => stat(path).then((found) => found.isDirectory(), rejectUnreadable(path))));
  const named = paths.filter((path, i) => !folders[i] && !SIGNATURE.test(path) && !SKIPPED.test(path));
  if (named.length === 0) throw new CliError('usage', 'No file to publish. Name at least one.');
  const artifacts = await Promise.all(
    named.map(async (path) => {
      const name = basename(path);
      const found = guessArtifact(name);
      if (!found) throw new CliError('usage', `The platform of ${name} is unknown. Put windows, darwin or linux into its name.`);
      const signed = paths.find((other) => SIGNATURE.test(other) && other.replace(SIGNATURE, '') === path);
      return { path, name, ...found, ...(signed !== undefined && { signature: (await readText(signed)).trim() }) };
    }),
  );
  const keys = artifacts.map(artifactKey);
  const twice = artifacts.find((_artifact, i) => keys.indexOf(keys[i] as string) !== i);
  if (twice) throw new CliError('usage', `Another file is also for ${artifactKey(twice)}: ${twice.name}.`);
  return artifacts;
}

function findVersion(artifacts: readonly LocalArtifact[]): string {
  const versions = new Set(artifacts.map(({ name }) => readVersion(name)));
  const [version] = versions;
  if (versions.size !== 1 || version === undefined)
    throw new CliError('usage', 'The files have no common version in their names. Set it with --release-version.');
  return version;
}

function readText(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(rejectUnreadable(path));
}

const rejectUnreadable = (path: string) => (): never => {
  throw new CliError('usage', `${path} does not exist or can't be read. Check the path.`);
};

async function uploadArtifacts(context: Context, client: Latchkey, applicationId: string, artifacts: readonly LocalArtifact[]) {
  const stored = new Map<string, string>();
  for await (const { displayName, checksum, id } of client.files.iterate(applicationId))
    stored.set(`${displayName} ${checksum}`, id);
  const signal = stopSignal();
  const uploaded: ReleaseArtifact[] = [];
  const width = Math.max(...artifacts.map(({ name }) => name.length));
  for (const { path, ...artifact } of artifacts) {
    const progress = new UploadProgress(context, artifact.name, width);
    // Names of files on the server are shorter than those of builds; the content makes one.
    const checksum = await hashFile(path).catch(rejectUnreadable(path));
    const name = `r-${checksum.slice(0, 14)}`;
    const retry = createRateLimitRetry((line) => progress.wait(line), signal);
    const known = stored.get(`${name} ${checksum}`);
    const fileId = known ?? (await retry(() => client.files.upload(applicationId, path, { name, signal }))).id;
    progress.end(known ? 'unchanged' : 'uploaded');
    uploaded.push({ fileId, ...artifact });
  }
  return uploaded;
}

/**
 * True if a release has exactly these artifacts. The id of a file stands for its content, which
 * names it.
 */
function hasFiles({ artifacts }: Release, uploaded: readonly ReleaseArtifact[]): boolean {
  const describe = (artifact: ReleaseArtifact) => `${artifactKey(artifact)} ${artifact.fileId}`;
  const known = new Set(artifacts.map(describe));
  return known.size === uploaded.length && uploaded.every((artifact) => known.has(describe(artifact)));
}
