import { randomUUID } from 'node:crypto';
import { RuntimeKeyType } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { NOT_FOUND, refusalOf } from '@latchkey/testkit/refusal';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { everything } from '../testing/rows.ts';
import { type OwnedRef, startTestApps, type TestApps } from '../testing/test-apps.ts';

let apps: TestApps;
beforeAll(async () => {
  apps = await startTestApps();
});
afterAll(() => apps.stop());

/** Every call that names an application of an account, as it would succeed for an application that is there. */
const CALLS: Record<string, (ref: OwnedRef) => Promise<unknown>> = {
  getApplicationSettings: (ref) => apps.client.getApplicationSettings(ref),
  updateApplicationSetting: (ref) =>
    apps.client.updateApplicationSetting({ ...ref, field: 'status', value: { case: 'stringValue', value: 'paused' } }),
  listLicenseLevels: (ref) => apps.client.listLicenseLevels(ref),
  replaceLicenseLevels: (ref) => apps.client.replaceLicenseLevels({ ...ref, levels: ['gold'] }),
  rotateRuntimeKey: (ref) => apps.client.rotateRuntimeKey({ ...ref, type: RuntimeKeyType.SOCKET }),
  deleteApplication: (ref) => apps.client.deleteApplication(ref),
};

const UUID = '018f2b6c-7d1e-7a3b-9c4d-5e6f708192a3';
/** Texts that are no UUID, of the kinds that a database or a parser may stumble over. */
const MALFORMED = [
  '',
  ' ',
  'undefined',
  '1',
  UUID.replaceAll('-', ''),
  `{${UUID}}`,
  `urn:uuid:${UUID}`,
  ` ${UUID}`,
  `${UUID}\n`,
  `${UUID}\0`,
  `${UUID.slice(0, -1)}\0`,
  `${UUID.slice(0, -1)}g`,
  `${UUID.slice(0, -1)}\ud800`,
  `${UUID.slice(0, -2)}\u{1f600}`,
  `${UUID.slice(0, -1)}\u0663`,
  UUID.replace('-', '\u2010'),
  `${UUID.slice(0, 23)}'--${UUID.slice(26)}`,
  UUID.repeat(10_000),
  '__proto__',
];

describe('an application that is not there for the account', () => {
  let refs: Record<string, OwnedRef>;
  beforeAll(async () => {
    const own = await apps.createOwned();
    const foreign = await apps.createOwned();
    const deleted = await apps.createOwned();
    await apps.client.deleteApplication(deleted);
    refs = {
      'another account’s': { ...own, applicationId: foreign.applicationId },
      'another account’s in capitals': { ...own, applicationId: foreign.applicationId.toUpperCase() },
      'its own under another account': { ...own, accountId: foreign.accountId },
      'its own under an unknown account': { ...own, accountId: randomUUID() },
      deleted,
      'deleted, in capitals': { ...deleted, applicationId: deleted.applicationId.toUpperCase() },
      'never made': { ...own, applicationId: randomUUID() },
      'the nil id': { ...own, applicationId: '00000000-0000-0000-0000-000000000000' },
      'the id of the account': { ...own, applicationId: own.accountId },
    };
    for (const text of MALFORMED) {
      refs[`malformed: ${text.slice(0, 40)} (${text.length})`] = { ...own, applicationId: text };
      refs[`under a malformed account: ${text.slice(0, 40)} (${text.length})`] = { ...own, accountId: text };
    }
  });

  it.each(Object.keys(CALLS))('gets one and the same answer from %s, whatever the reason, and nothing changes', async (name) => {
    const call = CALLS[name] as (ref: OwnedRef) => Promise<unknown>;
    const before = await everything(apps.db);
    const answers = Object.fromEntries(
      await Promise.all(Object.entries(refs).map(async ([reason, ref]) => [reason, await refusalOf(call(ref))])),
    );
    expect(answers).toEqual(Object.fromEntries(Object.keys(refs).map((reason) => [reason, NOT_FOUND])));
    expect(await everything(apps.db)).toEqual(before);
  });
});

describe('an application of the account', () => {
  it.each(Object.keys(CALLS))('is found by %s whatever the case of the ids (RFC 9562)', async (name) => {
    const { accountId, applicationId } = await apps.createOwned();
    const call = CALLS[name] as (ref: OwnedRef) => Promise<unknown>;
    await call({ accountId: accountId.toUpperCase(), applicationId: applicationId.toUpperCase() });
  });
});
