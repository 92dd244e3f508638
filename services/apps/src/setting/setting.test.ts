import { ApplicationStatus } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { NOT_FOUND, refusalOf } from '@latchkey/testkit/refusal';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventsOf, everything } from '../testing/rows.ts';
import { type OwnedRef, startTestApps, type TestApps } from '../testing/test-apps.ts';
import { ASTRAL, SPACES, UNSTORABLE } from '../testing/texts.ts';

let apps: TestApps;
beforeAll(async () => {
  apps = await startTestApps();
});
afterAll(() => apps.stop());

const UNKNOWN = { reason: 'setting_unknown', kind: 'malformed', code: 'VALIDATION_ERROR', metadata: {} };
const INVALID = { reason: 'setting_value_invalid', kind: 'invalid', code: 'bad_request', metadata: {} };
const LICENSE_CLIENT_ID = 'applicationLicenseRequiresClientId';
const USER_CLIENT_ID = 'applicationUserRequiresClientId';
const USER_LICENSE = 'applicationUserRequiresLicense';
const BOOLEAN_FIELDS = [LICENSE_CLIENT_ID, USER_CLIENT_ID, USER_LICENSE];

/** Sets a field; the value undefined is one that is absent. */
function set(ref: OwnedRef, field: string, value: boolean | string | undefined, client = apps.client) {
  if (typeof value === 'boolean') return client.updateApplicationSetting({ ...ref, field, value: { case: 'boolValue', value } });
  if (typeof value === 'string') return client.updateApplicationSetting({ ...ref, field, value: { case: 'stringValue', value } });
  return client.updateApplicationSetting({ ...ref, field });
}

/** The settings under the names of the REST interface. */
async function settingsOf(ref: OwnedRef) {
  const { settings } = await apps.client.getApplicationSettings(ref);
  return {
    [LICENSE_CLIENT_ID]: settings?.licenseRequiresClientId,
    [USER_CLIENT_ID]: settings?.userRequiresClientId,
    [USER_LICENSE]: settings?.userRequiresLicense,
    version: settings?.version,
    status: settings && ApplicationStatus[settings.status].toLowerCase(),
  };
}

const DEFAULTS = {
  [LICENSE_CLIENT_ID]: false,
  [USER_CLIENT_ID]: false,
  [USER_LICENSE]: false,
  version: '1.0',
  status: 'online',
};

describe('setting a field', () => {
  it.each([
    [LICENSE_CLIENT_ID, true],
    [USER_CLIENT_ID, true],
    [USER_LICENSE, true],
    ['version', '2.0'],
    ['status', 'paused'],
  ] as const)('changes %s and nothing else, here or of another application, and can be undone', async (field, value) => {
    const [ref, other] = await Promise.all([apps.createOwned(), apps.createOwned()]);
    await set(ref, field, value);
    expect(await settingsOf(ref)).toEqual({ ...DEFAULTS, [field]: value });
    expect(await settingsOf(other)).toEqual(DEFAULTS);
    await set(ref, field, DEFAULTS[field as keyof typeof DEFAULTS]);
    expect(await settingsOf(ref)).toEqual(DEFAULTS);
  });

  it.each(Object.entries(DEFAULTS))('to the value that it has succeeds and changes no row: %s', async (field, value) => {
    const ref = await apps.createOwned();
    const before = await everything(apps.db);
    await set(ref, field, value);
    expect(await everything(apps.db)).toEqual(before);
  });
});

describe('a version', () => {
  it.each([
    ['1 character', 'v'],
    ['64 characters', 'v'.repeat(64)],
    ['64 astral characters', ASTRAL.repeat(64)],
    ['what looks like another type', 'true'],
    ['the word null', 'null'],
    ['inner spaces and quotes', `1.0  'beta' "x" \\`],
    ['format characters, which are no control characters', 'a\u200bb\u2028c'],
  ])('may have %s', async (_, version) => {
    const ref = await apps.createOwned();
    await set(ref, 'version', version);
    expect(await settingsOf(ref)).toEqual({ ...DEFAULTS, version });
  });

  it('is trimmed before it is measured and compared', async () => {
    const ref = await apps.createOwned();
    await set(ref, 'version', `${SPACES}${ASTRAL.repeat(64)}${SPACES}`);
    expect((await settingsOf(ref)).version).toBe(ASTRAL.repeat(64));
    const before = await everything(apps.db);
    await set(ref, 'version', `  ${ASTRAL.repeat(64)}\n`);
    expect(await everything(apps.db)).toEqual(before);
  });
});

const CONTROL_CHARACTERS = ['\u0001', '\t', '\n', '\u001b', '\u007f', '\u0085', '\u009f'];
const WRONG: ReadonlyArray<readonly [field: string, value: boolean | string | undefined]> = [
  ...BOOLEAN_FIELDS.flatMap((field) => ['true', 'false', '', '1', undefined].map((value) => [field, value] as const)),
  ...[true, false, undefined, '', '   ', SPACES, 'v'.repeat(65), ASTRAL.repeat(65), 'v'.repeat(1_000_000)].map(
    (value) => ['version', value] as const,
  ),
  ...UNSTORABLE.map((value) => ['version', value] as const),
  ...CONTROL_CHARACTERS.map((character) => ['version', `1${character}0`] as const),
  ...[true, false, undefined, '', 'Paused', 'ONLINE', ' online', 'paused\n', 'deleted', 'active', 'online\0'].map(
    (value) => ['status', value] as const,
  ),
];

describe('a refused setting', () => {
  it('is one whose value does not fit the field, and changes nothing', async () => {
    const ref = await apps.createOwned();
    const before = await everything(apps.db);
    for (const [field, value] of WRONG) {
      const label = `${field} = ${JSON.stringify(value)?.slice(0, 40)}`;
      expect({ label, ...(await refusalOf(set(ref, field, value))) }).toMatchObject({ label, ...INVALID });
    }
    expect(await everything(apps.db)).toEqual(before);
  });

  it.each([
    '',
    'Version',
    'version ',
    'STATUS',
    'name',
    'licenseRequiresClientId',
    'license_requires_client_id',
    'last_sequence',
    'account_id',
    '__proto__',
    'constructor',
    'toString',
    'version\0',
    '\ud800',
    'v'.repeat(100_000),
  ])('is one of a field that there is not, with any value, and changes nothing: %#', async (field) => {
    const ref = await apps.createOwned();
    const before = await everything(apps.db);
    for (const value of [true, 'online', '', undefined]) expect(await refusalOf(set(ref, field, value))).toMatchObject(UNKNOWN);
    expect(await everything(apps.db)).toEqual(before);
  });

  it('says first that the application is not there', async () => {
    const [ref, foreign] = await Promise.all([apps.createOwned(), apps.createOwned()]);
    const mixed = { ...ref, applicationId: foreign.applicationId };
    expect(await refusalOf(set(mixed, 'nothing', true))).toEqual(NOT_FOUND);
    expect(await refusalOf(set(mixed, 'status', 'neither'))).toEqual(NOT_FOUND);
  });
});

describe('settings updated at once', () => {
  it('are all kept where the fields differ, also through two instances', async () => {
    const ref = await apps.createOwned();
    const other = apps.connect();
    await Promise.all([
      set(ref, LICENSE_CLIENT_ID, true),
      set(ref, USER_CLIENT_ID, true, other.client),
      set(ref, USER_LICENSE, true),
      set(ref, 'version', '9.9', other.client),
      set(ref, 'status', 'paused'),
      apps.client.replaceLicenseLevels({ ...ref, levels: ['gold'] }),
      other.client.rotateRuntimeKey({ ...ref, type: 1 }),
      apps.client.rotateRuntimeKey({ ...ref, type: 2 }),
    ]);
    expect(await settingsOf(ref)).toEqual({
      [LICENSE_CLIENT_ID]: true,
      [USER_CLIENT_ID]: true,
      [USER_LICENSE]: true,
      version: '9.9',
      status: 'paused',
    });
    expect((await apps.client.listLicenseLevels(ref)).levels).toEqual(['gold']);
    const types = (await eventsOf(apps.db, ref.applicationId)).map(({ type }) => type);
    expect(types.toSorted()).toEqual(['paused', 'runtime_key_rotated', 'runtime_key_rotated', 'version_changed']);
  });

  it('follow one another where the field is the same: each event begins where the one before ended', async () => {
    const ref = await apps.createOwned();
    const other = apps.connect();
    const versions = Array.from({ length: 24 }, (_, i) => `2.${i}`);
    await Promise.all(versions.map((version, i) => set(ref, 'version', version, i % 2 ? other.client : apps.client)));
    const events = await eventsOf(apps.db, ref.applicationId);
    const inOrder = events.toSorted((a, b) => Number(a.sequence) - Number(b.sequence));
    expect(inOrder.map(({ sequence }) => sequence)).toEqual(versions.map((_, i) => String(i + 1)));
    expect(inOrder.map(({ data }) => data.previous_version)).toEqual([
      '1.0',
      ...inOrder.slice(0, -1).map(({ data }) => data.version),
    ]);
    expect(inOrder.map(({ data }) => data.version).toSorted()).toEqual(versions.toSorted());
    expect((await settingsOf(ref)).version).toBe(inOrder.at(-1)?.data.version);
  });

  it('to one value write one event', async () => {
    const ref = await apps.createOwned();
    await Promise.all(Array.from({ length: 12 }, () => set(ref, 'status', 'paused')));
    expect((await eventsOf(apps.db, ref.applicationId)).map(({ type, sequence }) => [type, sequence])).toEqual([['paused', '1']]);
  });
});
