import { randomUUID } from 'node:crypto';
import { RuntimeKeyType } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { NOT_FOUND, refusalOf } from '@latchkey/testkit/refusal';
import { beforeAll, expect, it } from 'vitest';
import { everything } from '../testing/rows.ts';
import { type OwnedRef, useTestApps } from '../testing/test-apps.ts';

const apps = useTestApps();

/** Every call that names an application of an account. */
const CALLS: Record<string, (ref: OwnedRef) => Promise<unknown>> = {
  getApplicationSettings: (ref) => apps.client.getApplicationSettings(ref),
  updateApplicationSetting: (ref) => apps.set(ref, 'status', 'paused'),
  listLicenseLevels: (ref) => apps.client.listLicenseLevels(ref),
  replaceLicenseLevels: (ref) => apps.client.replaceLicenseLevels({ ...ref, levels: ['gold'] }),
  rotateRuntimeKey: (ref) => apps.client.rotateRuntimeKey({ ...ref, type: RuntimeKeyType.SOCKET }),
  deleteApplication: (ref) => apps.client.deleteApplication(ref),
};

const UUID = '018f2b6c-7d1e-7a3b-9c4d-5e6f708192a3';
/** Texts other than a UUID, which a database or a parser may accept. */
const MALFORMED = [
  '',
  'undefined',
  UUID.replaceAll('-', ''),
  `{${UUID}}`,
  `urn:uuid:${UUID}`,
  ` ${UUID}`,
  `${UUID}\0`,
  `${UUID.slice(0, -1)}\ud800`,
  `${UUID.slice(0, -1)}\u0663`,
  `${UUID.slice(0, 23)}'--${UUID.slice(26)}`,
  UUID.repeat(10_000),
  '__proto__',
];

let refs: OwnedRef[];
beforeAll(async () => {
  const [own, foreign, deleted] = await Promise.all([apps.createOwned(), apps.createOwned(), apps.createOwned()]);
  await apps.client.deleteApplication(deleted);
  refs = [
    deleted,
    ...[foreign.applicationId, foreign.applicationId.toUpperCase(), randomUUID(), own.accountId, ...MALFORMED].map(
      (applicationId) => ({ ...own, applicationId }),
    ),
    ...[randomUUID(), ...MALFORMED].map((accountId) => ({ ...own, accountId })),
  ];
});

it.each(Object.entries(CALLS))('%s has one response for every application that the account does not have', async (_, call) => {
  const before = await everything(apps.db);
  expect(await Promise.all(refs.map((ref) => refusalOf(call(ref))))).toEqual(refs.map(() => NOT_FOUND));
  expect(await everything(apps.db)).toEqual(before);
});

it.each(Object.entries(CALLS))('%s finds an application by ids in any case (RFC 9562)', async (_, call) => {
  const { accountId, applicationId } = await apps.createOwned();
  await call({ accountId: accountId.toUpperCase(), applicationId: applicationId.toUpperCase() });
});
