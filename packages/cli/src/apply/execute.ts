import type { ApplicationChanges, Latchkey, UploadProgress as UploadProgressFacts } from '@latchkey/client';
import { CliError } from '../program/errors.ts';
import { createRateLimitRetry, type RateLimitRetry } from '../program/rate-limit-retry.ts';
import { hashFile } from '../upload/hash-file.ts';
import type { UploadProgress } from '../upload/upload-progress.ts';
import { describeCount } from './format-plan.ts';
import { type ApplicationChange, changesItself, type Plan, type SettingChange } from './plan.ts';
import type { FileChange } from './plan-files.ts';
import type { Etags } from './read-state.ts';

type Progress = Pick<UploadProgress, 'update' | 'wait' | 'end'>;

export interface ExecuteOptions {
  readonly retryRateLimited: RateLimitRetry;
  /** Entity tags of the plan: what was changed since then is not overwritten. */
  readonly etags: ReadonlyMap<string, Etags>;
  /** Called after each change but an upload, which has a progress. */
  readonly note: (line: string) => void;
  readonly startUpload: (name: string) => Progress;
}

/**
 * Carries out a plan, in its order. Whenever it is interrupted, another plan and its execution lead
 * to the same result.
 */
export async function executePlan(client: Latchkey, plan: Plan, options: ExecuteOptions): Promise<void> {
  let done = 0;
  try {
    for (const change of plan.changes) {
      for await (const line of executeChange(client, change, options)) {
        done += 1;
        if (line !== undefined) options.note(line);
      }
    }
  } catch (err) {
    options.note(`Stopped after ${done} of ${describeCount(plan)}. Run the command again to continue.`);
    throw err;
  }
}

/** Clients hear of a pause first, and of a version or the end of a pause once all else is done. */
function phaseOf({ name, to }: SettingChange): 'first' | 'middle' | 'last' {
  if (name === 'status') return to === 'paused' ? 'first' : 'last';
  return name === 'version' ? 'last' : 'middle';
}

/** Yields after each counted change what was done, unless an upload has shown it. */
async function* executeChange(client: Latchkey, change: ApplicationChange, options: ExecuteOptions) {
  const { retryRateLimited } = options;
  const { name, levels, files, channels = [] } = change;
  if (change.action === 'delete') {
    await retryRateLimited(() => client.applications.delete(change.id ?? ''));
    yield `Deleted ${name}.`;
    return;
  }
  const etags = options.etags.get(change.id ?? '');
  let ifMatch = etags?.settings;
  const id = change.id ?? (await retryRateLimited(() => client.applications.create({ name }))).id;
  const setSettings = async (phase: ReturnType<typeof phaseOf>) => {
    for (const setting of change.settings.filter((setting) => phaseOf(setting) === phase)) {
      const changes = { [setting.name]: setting.to } as ApplicationChanges;
      await retryRateLimited(() => client.applications.update(id, changes, { ifMatch }));
      ifMatch = undefined;
    }
  };
  await setSettings('first');
  await setSettings('middle');
  if (levels) await retryRateLimited(() => client.levels.set(id, levels.to, { ifMatch: etags?.levels }));
  for (const file of files) {
    await executeFile(client, id, file, options);
    yield file.action === 'delete' ? `Deleted ${file.name} of ${name}.` : undefined;
  }
  for (const { action, releaseId, rolloutPercent } of channels) {
    if (action === 'publish') await retryRateLimited(() => client.releases.publish(releaseId, { rolloutPercent }));
    else await retryRateLimited(() => client.releases.setRollout(releaseId, rolloutPercent ?? 0));
    // A publication may have set the version.
    ifMatch = undefined;
  }
  await setSettings('last');
  if (changesItself(change)) yield `${change.action === 'create' ? 'Created' : 'Changed'} ${name}.`;
}

async function executeFile(client: Latchkey, applicationId: string, file: FileChange, options: ExecuteOptions): Promise<void> {
  const { action, name, id } = file;
  if (action === 'delete') return options.retryRateLimited(() => client.files.delete(applicationId, id ?? ''));
  const progress = options.startUpload(name);
  try {
    await upload(client, applicationId, file, progress);
    progress.end(action === 'replace' ? 'replaced' : 'uploaded');
  } catch (err) {
    progress.end('failed');
    throw err;
  }
}

/** Uploads a file as it was planned. One that was changed since then replaces nothing. */
async function upload(client: Latchkey, applicationId: string, file: FileChange, progress: Progress): Promise<void> {
  const { action, name, sha256, source } = file;
  const { path = '', declaredPath = '', byteSize = 0 } = source ?? {};
  const retryRateLimited = createRateLimitRetry((line) => progress.wait(line));
  const onProgress = ({ sentBytes }: UploadProgressFacts) => progress.update(sentBytes, byteSize);
  const replace = action === 'replace';
  const changed = () => new CliError('failed', `${declaredPath} was changed since the plan was made. Run the command again.`);
  if (replace && (await hashFile(path)) !== sha256) throw changed();
  const stored = await retryRateLimited(() => client.files.upload(applicationId, path, { name, replace, onProgress }));
  if (stored.checksum === sha256) return;
  if (!replace) await retryRateLimited(() => client.files.delete(applicationId, stored.id));
  throw changed();
}
