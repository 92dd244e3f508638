import { type ApplicationChanges, type ApplicationSettings, LatchkeyError } from '@latchkey/client';
import type { QueryClient } from '@tanstack/react-query';
import { latchkey } from '../../api/client.ts';
import { settingsQuery } from '../../api/queries.ts';
import { isChangedMeanwhile } from '../../error/explain-error.ts';

/** Others may change other settings meanwhile, which the change then has to expect. */
const ATTEMPTS = 5;

export interface SettingChange<Name extends keyof ApplicationSettings = keyof ApplicationSettings> {
  readonly applicationId: string;
  readonly field: Name;
  /** Value that the person saw and wants to replace. */
  readonly seen: ApplicationSettings[Name];
  readonly value: ApplicationSettings[Name];
}

/**
 * Sets a setting if it still has the value that the person saw.
 *
 * @throws LatchkeyError `changed_meanwhile` if it has a third value
 */
export async function changeSetting(queryClient: QueryClient, change: SettingChange): Promise<void> {
  const { applicationId, field, seen, value } = change;
  const query = settingsQuery(applicationId);
  for (let attempt = 1; ; attempt += 1) {
    const { settings, etag } = await queryClient.fetchQuery({
      ...query,
      staleTime: attempt === 1 ? Number.POSITIVE_INFINITY : 0,
    });
    if (settings[field] === value) return;
    if (settings[field] !== seen)
      throw new LatchkeyError('The setting was changed meanwhile.', { code: 'changed_meanwhile', status: 412 });
    try {
      return await latchkey.applications.update(applicationId, { [field]: value } as ApplicationChanges, { ifMatch: etag });
    } catch (error) {
      if (!isChangedMeanwhile(error) || attempt === ATTEMPTS) throw error;
    }
  }
}
