import { ApplicationStatus } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { NOT_FOUND, refusalOf } from '@latchkey/testkit/refusal';
import { describe, expect, it } from 'vitest';
import { everything } from '../testing/rows.ts';
import { ASTRAL, type OwnedRef, SPACES, toValue, UNSTORABLE, useTestApps } from '../testing/test-apps.ts';

const apps = useTestApps();

const { ONLINE, PAUSED } = ApplicationStatus;
const DEFAULTS = {
  licenseRequiresClientId: false,
  userRequiresClientId: false,
  userRequiresLicense: false,
  version: '1.0',
  status: ONLINE,
};
const BOOLEANS = ['license_requires_client_id', 'user_requires_client_id', 'user_requires_license'];
const settingsOf = async (ref: OwnedRef) => (await apps.client.getApplicationSettings(ref)).settings;

describe('a setting', () => {
  it.each([
    ['license_requires_client_id', true, false, { licenseRequiresClientId: true }],
    ['user_requires_client_id', true, false, { userRequiresClientId: true }],
    ['user_requires_license', true, false, { userRequiresLicense: true }],
    ['version', '2.0', '1.0', { version: '2.0' }],
    ['status', 'paused', 'online', { status: PAUSED }],
  ] as const)('%s changes alone, here and of no other application', async (field, value, initial, changed) => {
    const [ref, other] = await Promise.all([apps.createOwned(), apps.createOwned()]);
    await apps.set(ref, field, value);
    expect(await settingsOf(ref)).toMatchObject({ ...DEFAULTS, ...changed });
    expect(await settingsOf(other)).toMatchObject(DEFAULTS);
    await apps.set(ref, field, initial);
    const before = await everything(apps.db);
    await apps.set(ref, field, initial);
    expect(await everything(apps.db)).toEqual(before);
    expect(await settingsOf(ref)).toMatchObject(DEFAULTS);
  });

  it.each(['v', 'v'.repeat(64), ASTRAL.repeat(64), 'true', `1.0  'beta' "x" \\`, 'a\u200bb\u2028c'])(
    'version may be %j, and is trimmed',
    async (version) => {
      const ref = await apps.createOwned();
      await apps.set(ref, 'version', SPACES + version + SPACES);
      expect((await settingsOf(ref))?.version).toBe(version);
    },
  );

  const WRONG_VALUES: ReadonlyArray<readonly [field: string, value: boolean | string | undefined]> = [
    ...BOOLEANS.flatMap((field) => ['true', '', undefined].map((value) => [field, value] as const)),
    ...[true, undefined, '', SPACES, 'v'.repeat(65), ASTRAL.repeat(65), 'v'.repeat(1_000_000), ...UNSTORABLE].map(
      (value) => ['version', value] as const,
    ),
    ...['\u0001', '\t', '\n', '\u007f', '\u009f'].map((character) => ['version', `1${character}0`] as const),
    ...[true, undefined, '', 'Paused', ' online', 'deleted', 'online\0'].map((value) => ['status', value] as const),
  ];
  const UNKNOWN_FIELDS = [
    '',
    'Version',
    'name',
    'userRequiresLicense',
    'last_sequence',
    '__proto__',
    'toString',
    'version\0',
    '\ud800',
  ];

  it('is rejected for a wrong value or an unknown field, after the application was found, and changes nothing', async () => {
    const [ref, foreign] = await Promise.all([apps.createOwned(), apps.createOwned()]);
    const before = await everything(apps.db);
    const cases = [
      ...WRONG_VALUES.map((wrong) => [...wrong, 'setting_value_invalid', 'bad_request'] as const),
      ...UNKNOWN_FIELDS.map((field) => [field, 'online', 'setting_unknown', 'VALIDATION_ERROR'] as const),
    ];
    for (const [field, value, reason, code] of cases) {
      const request = { ...ref, field, ...(value !== undefined && { value: toValue(value) }) };
      const label = `${field} = ${String(value).slice(0, 40)}`;
      const refusal = await refusalOf(apps.client.updateApplicationSetting(request));
      expect({ label, ...refusal }).toMatchObject({ label, reason, code });
      const mixed = { ...request, accountId: foreign.accountId };
      expect(await refusalOf(apps.client.updateApplicationSetting(mixed))).toEqual(NOT_FOUND);
    }
    expect(await everything(apps.db)).toEqual(before);
  });
});

it('concurrent changes of different fields are all stored', async () => {
  const ref = await apps.createOwned();
  const { client } = apps.connect();
  await Promise.all([
    ...BOOLEANS.map((field) => apps.set(ref, field, true)),
    client.updateApplicationSetting({ ...ref, field: 'version', value: toValue('9.9') }),
    client.updateApplicationSetting({ ...ref, field: 'status', value: toValue('paused') }),
    apps.client.replaceLicenseLevels({ ...ref, levels: ['gold'] }),
  ]);
  const booleans = { licenseRequiresClientId: true, userRequiresClientId: true, userRequiresLicense: true };
  expect(await settingsOf(ref)).toMatchObject({ ...booleans, version: '9.9', status: PAUSED });
  expect((await apps.client.listLicenseLevels(ref)).levels).toEqual(['gold']);
});
