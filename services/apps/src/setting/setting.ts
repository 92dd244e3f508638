import type { MessageInitShape } from '@bufbuild/protobuf';
import type { Acting } from '@latchkey/audit/actor';
import type { AuditAction } from '@latchkey/contract/audit-actions';
import { describeLength, type Length } from '@latchkey/contract/lengths';
import { APPLICATION_TEXTS, STATUSES } from '@latchkey/contract/setting-definitions';
import { isExpected } from '@latchkey/kit/validation/etag';
import { hasLength } from '@latchkey/kit/validation/text';
import {
  ApplicationSettingsSchema,
  ApplicationStatus,
  type UpdateApplicationSettingRequest,
} from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { type ApplicationRef, parseRef } from '../application/application-ref.ts';
import { type ApplicationChange, changeApplication } from '../application/change-application.ts';
import type { AppsContext } from '../context.ts';
import type { SettingsRow } from '../db/schema.ts';
import type { EventBody } from '../event/event-log.ts';
import { errors } from '../proto-errors.ts';

type Value = boolean | string | undefined;

interface Setting {
  /** The value to store, or undefined for a wrong one. */
  readonly parse: (value: Value) => boolean | string | undefined;
  readonly rule: string;
  /** The event for live clients, if they are notified. */
  readonly event?: (value: string, previous: string) => EventBody;
  /** Name of a change in the audit log; `application.setting_updated` unless set. */
  readonly action?: (value: boolean | string) => AuditAction;
}

const boolean: Setting = {
  parse: (value) => (typeof value === 'boolean' ? value : undefined),
  rule: 'must be a boolean for this field',
};

const CONTROL_CHARACTER = /\p{Cc}/u;

const text = ({ min, max }: Length): Setting => ({
  parse: (value) => {
    const trimmed = typeof value === 'string' ? value.trim() : '';
    return hasLength(trimmed, min, max) && !CONTROL_CHARACTER.test(trimmed) ? trimmed : undefined;
  },
  rule: `must be ${describeLength({ min, max })} without control characters for this field`,
});

/** Every setting by its column, which is also the name of its field in the protocol. */
const SETTINGS: Readonly<Record<keyof SettingsRow, Setting>> = {
  license_requires_client_id: boolean,
  user_requires_client_id: boolean,
  user_requires_license: boolean,
  version: {
    ...text(APPLICATION_TEXTS.version.length),
    event: (version, previousVersion) => ({ case: 'versionChanged', value: { version, previousVersion } }),
  },
  status: {
    parse: (value) => STATUSES.find((status) => status === value),
    rule: `must be ${STATUSES.join(' or ')} for this field`,
    action: (status) => (status === 'paused' ? 'application.paused' : 'application.resumed'),
    event: (status) => (status === 'paused' ? { case: 'paused', value: { status } } : { case: 'resumed', value: { status } }),
  },
};

/** The settings of an application of the account. Throws `application_not_found`. */
export async function getSettings(ctx: AppsContext, ref: ApplicationRef) {
  const { accountId, applicationId } = parseRef(ref);
  const row = await ctx.reads.selectSettings(applicationId, accountId);
  if (!row) throw errors.application_not_found();
  return { settings: toSettingsMessage(row), etag: settingsEtag(row) };
}

/**
 * Entity tag of settings, with its quotes: their values in base64url, as a hash would make a
 * read dearer. No value contains NUL.
 */
function settingsEtag(row: SettingsRow): string {
  const values = ApplicationSettingsSchema.fields.map(({ name }) => String(row[name as keyof SettingsRow]));
  return `"${Buffer.from(values.join('\0')).toString('base64url')}"`;
}

export function toSettingsMessage(row: SettingsRow): MessageInitShape<typeof ApplicationSettingsSchema> {
  const fields = ApplicationSettingsSchema.fields.map(({ localName, name }) => [localName, row[name as keyof SettingsRow]]);
  return { ...Object.fromEntries(fields), status: toStatus(row.status) };
}

export const toStatus = (status: SettingsRow['status']) =>
  status === 'paused' ? ApplicationStatus.PAUSED : ApplicationStatus.ONLINE;

/**
 * Sets one setting, with its event in the same transaction. The current value changes nothing and
 * has no event.
 *
 * @throws `application_not_found` first, then `changed_meanwhile`, `setting_unknown` and
 *   `setting_value_invalid`
 */
export async function updateSetting(ctx: Acting<AppsContext>, request: UpdateApplicationSettingRequest): Promise<void> {
  const { field, value, ifMatch } = request;
  await changeApplication(ctx, request, async (change) => {
    if (!isExpected(ifMatch, settingsEtag(change.row))) throw errors.changed_meanwhile();
    if (!Object.hasOwn(SETTINGS, field)) throw errors.setting_unknown();
    const column = field as keyof SettingsRow;
    const setting = SETTINGS[column];
    const next = setting.parse(value.value);
    if (next === undefined) throw errors.setting_value_invalid().withDetails({ path: 'value', message: setting.rule });
    await applySetting(change, column, next, ctx.clock());
  });
}

/** Stores a valid value of a setting, with its event. The current value changes nothing. */
export async function applySetting(
  { row, update, record }: ApplicationChange,
  field: keyof SettingsRow,
  value: boolean | string,
  now: Date,
): Promise<void> {
  const setting = SETTINGS[field];
  const previous = row[field];
  if (value === previous) return;
  const event = setting.event?.(String(value), String(previous));
  await update({ [field]: value }, event, now);
  await record(setting.action?.(value) ?? 'application.setting_updated', { field, value, previous });
}
