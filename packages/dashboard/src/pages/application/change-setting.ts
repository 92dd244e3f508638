import { type ApplicationChanges, type ApplicationSettings, LatchkeyError } from '@latchkey/client';
import { latchkey } from '../../api/client.ts';
import { isChangedMeanwhile } from '../../error/explain-error.ts';

/** Others may change other settings between the read and the change. */
const ATTEMPTS = 5;

export interface SettingChange<Name extends keyof ApplicationSettings = keyof ApplicationSettings> {
  readonly applicationId: string;
  readonly field: Name;
  /** Value that the person saw and wants to replace. */
  readonly seen: ApplicationSettings[Name];
  readonly value: ApplicationSettings[Name];
}

/**
 * Sets a setting if it still has the value that the person saw. Others may have changed other
 * settings since then.
 *
 * @throws LatchkeyError `changed_meanwhile` if it has a third value
 */
export async function changeSetting(change: SettingChange, attempts = ATTEMPTS): Promise<void> {
  const { applicationId, field, seen, value } = change;
  const { settings, etag } = await latchkey.applications.readSettings(applicationId);
  if (settings[field] === value) return;
  if (settings[field] !== seen)
    throw new LatchkeyError('The setting was changed meanwhile.', { code: 'changed_meanwhile', status: 412 });
  const changes = { [field]: value } as ApplicationChanges;
  await latchkey.applications.update(applicationId, changes, { ifMatch: etag }).catch((error) => {
    if (!isChangedMeanwhile(error) || attempts === 1) throw error;
    return changeSetting(change, attempts - 1);
  });
}
