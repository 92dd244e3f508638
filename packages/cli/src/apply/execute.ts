import type { ApplicationChanges, Latchkey } from '@latchkey/client';
import type { Patiently } from './patience.ts';
import { type ApplicationChange, changesItself, type Plan, type SettingChange } from './plan.ts';
import { type FileChange, stagingName } from './plan-files.ts';

export interface ExecuteOptions {
  readonly patiently: Patiently;
  /** Called after each change. */
  readonly onDone: (line: string) => void;
}

/**
 * Carries out a plan, in its order. Whenever it is interrupted, another plan and its execution lead
 * to the same result.
 */
export async function executePlan(client: Latchkey, plan: Plan, options: ExecuteOptions): Promise<void> {
  for (const change of plan.changes) {
    if (change.action === 'delete') {
      await options.patiently(() => client.applications.delete(change.id ?? ''));
      options.onDone(`Deleted ${change.name}.`);
    } else {
      await executeChange(client, change, options);
    }
  }
}

/** Clients hear of a pause first, and of a version or the end of a pause once all else is done. */
function phaseOf({ name, to }: SettingChange): 'first' | 'middle' | 'last' {
  if (name === 'status') return to === 'paused' ? 'first' : 'last';
  return name === 'version' ? 'last' : 'middle';
}

async function executeChange(client: Latchkey, change: ApplicationChange, options: ExecuteOptions): Promise<void> {
  const { patiently, onDone } = options;
  const { name, levels, files } = change;
  const id = change.id ?? (await patiently(() => client.applications.create({ name }))).id;
  const setSettings = async (phase: ReturnType<typeof phaseOf>) => {
    for (const setting of change.settings.filter((setting) => phaseOf(setting) === phase)) {
      await patiently(() => client.applications.update(id, { [setting.name]: setting.to } as ApplicationChanges));
    }
  };
  await setSettings('first');
  await setSettings('middle');
  if (levels) await patiently(() => client.levels.set(id, levels.to));
  for (const file of files) {
    await executeFile(client, id, file, patiently);
    onDone(`${{ create: 'Uploaded', replace: 'Replaced', delete: 'Deleted' }[file.action]} ${file.name} of ${name}.`);
  }
  await setSettings('last');
  if (changesItself(change)) onDone(`${change.action === 'create' ? 'Created' : 'Changed'} ${name}.`);
}

async function executeFile(client: Latchkey, applicationId: string, file: FileChange, patiently: Patiently): Promise<void> {
  const { files } = client;
  const { action, name, id, sha256 = '', source, stagedId } = file;
  // A new file needs no other name while it is uploaded.
  const isStaged = action === 'replace' || stagedId !== undefined;
  const newId = action === 'delete' ? undefined : (stagedId ?? (await upload(isStaged ? stagingName(sha256) : name)));
  if (id !== undefined) await patiently(() => files.delete(applicationId, id));
  if (newId !== undefined && isStaged) await patiently(() => files.rename(applicationId, newId, name));

  async function upload(as: string): Promise<string> {
    const { path = '', declaredPath = '' } = source ?? {};
    const stored = await patiently(() => files.upload(applicationId, path, { name: as }));
    if (stored.checksum === sha256) return stored.id;
    await patiently(() => files.delete(applicationId, stored.id));
    throw new Error(`${declaredPath} was changed while it was uploaded. Run the command again.`);
  }
}
