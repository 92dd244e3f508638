import type { Acting } from '@latchkey/audit/actor';
import { hasLength } from '@latchkey/kit/text';
import { updateApplication } from '../application/application.store.ts';
import { type ApplicationAction, recordApplication } from '../application/audit.ts';
import { type ApplicationRef, changeApplication, parseRef, toRef } from '../application/owned-application.ts';
import type { AppsContext } from '../context.ts';
import { errors } from '../errors.ts';
import type { EventBody } from '../event/event.ts';
import { type SettingsRow, selectSettings } from './setting.store.ts';

export type { SettingsRow } from './setting.store.ts';

/** The settings of an application of the account. Throws `application_not_found`. */
export async function getSettings(ctx: AppsContext, ref: ApplicationRef): Promise<SettingsRow> {
  const { accountId, applicationId } = parseRef(ref);
  const row = await selectSettings(ctx.pool, accountId, applicationId);
  if (!row) throw errors.application_not_found();
  return row;
}

type Column = keyof SettingsRow;
type Value = boolean | string | undefined;

interface Setting {
  readonly column: Column;
  /** The value as it is stored, or undefined where it does not fit. */
  readonly parse: (value: Value) => boolean | string | undefined;
  /** What fits, in words. */
  readonly rule: string;
  /** The event for live clients, for a field they hear of. */
  readonly event?: (value: string, previous: string) => EventBody;
  /** What the audit log says of a change, where it has a name of its own. */
  readonly action?: (value: boolean | string) => ApplicationAction;
}

const boolean = {
  parse: (value: Value) => (typeof value === 'boolean' ? value : undefined),
  rule: 'must be a boolean for this field',
};

const CONTROL_CHARACTER = /\p{Cc}/u;

function parseVersion(value: Value): string | undefined {
  const version = typeof value === 'string' ? value.trim() : '';
  return hasLength(version, 1, 64) && !CONTROL_CHARACTER.test(version) ? version : undefined;
}

const parseStatus = (value: Value) => (value === 'online' || value === 'paused' ? value : undefined);

/** Every setting by its name in the REST interface (specification 4.1, rule 4). */
const SETTINGS: ReadonlyMap<string, Setting> = new Map<string, Setting>([
  ['applicationLicenseRequiresClientId', { column: 'license_requires_client_id', ...boolean }],
  ['applicationUserRequiresClientId', { column: 'user_requires_client_id', ...boolean }],
  ['applicationUserRequiresLicense', { column: 'user_requires_license', ...boolean }],
  [
    'version',
    {
      column: 'version',
      parse: parseVersion,
      rule: 'must be 1 to 64 characters without control characters for this field',
      event: (version, previousVersion) => ({ case: 'versionChanged', value: { version, previousVersion } }),
    },
  ],
  [
    'status',
    {
      column: 'status',
      parse: parseStatus,
      rule: 'must be online or paused for this field',
      action: (status) => (status === 'paused' ? 'application.paused' : 'application.resumed'),
      event: (status) => (status === 'paused' ? { case: 'paused', value: { status } } : { case: 'resumed', value: { status } }),
    },
  ],
]);

/**
 * Sets one field, with its event in the same transaction. Setting the value that the field has changes and announces nothing
 * (decisions 6).
 *
 * @throws `application_not_found` first, then `setting_unknown` and `setting_value_invalid` (decisions 2)
 */
export async function updateSetting(ctx: Acting<AppsContext>, ref: ApplicationRef, field: string, value: Value): Promise<void> {
  await changeApplication(ctx, ref, async (tx, row, log) => {
    const setting = SETTINGS.get(field);
    if (!setting) throw errors.setting_unknown();
    const next = setting.parse(value);
    if (next === undefined) throw errors.setting_value_invalid().withDetails({ path: 'value', message: setting.rule });
    const previous = row[setting.column];
    if (next === previous) return;
    const event = setting.event?.(String(next), String(previous));
    const moved = event && { last_sequence: Number(row.last_sequence) + 1 };
    await updateApplication(tx, row.id, { [setting.column]: next, ...moved });
    if (event) await log(event, ctx.clock());
    const action = setting.action?.(next) ?? 'application.setting_updated';
    await recordApplication(ctx, tx, toRef(row), action, { field, value: next, previous });
  });
}
