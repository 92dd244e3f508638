import { randomUUID } from 'node:crypto';
import { refusalOf } from '@latchkey/testkit/refusal';
import { statementsOf } from '@latchkey/testkit/statements';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OwnedRef, startTestApps, type TestApps } from '../testing/test-apps.ts';

let apps: TestApps;
beforeAll(async () => {
  apps = await startTestApps();
});
afterAll(() => apps.stop());

async function statesOf(...applicationIds: string[]) {
  const { states } = await apps.client.batchGetLiveStates({ applicationIds });
  return states.toSorted((a, b) => (a.applicationId < b.applicationId ? -1 : 1));
}

const sorted = (...refs: OwnedRef[]) => refs.map(({ applicationId }) => applicationId).toSorted();

/** What looking up the application by its present socket key says of it. */
async function lookUp({ accountId, applicationId }: OwnedRef) {
  const { applications } = await apps.client.listApplications({ accountId, filter: { applicationIds: [applicationId] } });
  const value = applications[0]?.runtimeKeys?.socketKey ?? '';
  return apps.client.lookUpApplication({ key: { case: 'socketKey', value } });
}

const setVersion = (ref: OwnedRef, value: string) =>
  apps.client.updateApplicationSetting({ ...ref, field: 'version', value: { case: 'stringValue', value } });

describe('live states', () => {
  it('say of applications of any account what a look-up by their socket key says', async () => {
    const refs = [await apps.createOwned(), await apps.createOwned(), await apps.createOwned()] as const;
    await setVersion(refs[0], '2.0');
    await setVersion(refs[0], '3.0');
    await setVersion(refs[1], '2.0');
    const expected = await Promise.all(
      refs.map(async (ref) => {
        const { applicationId, lastSequence, keyFingerprint } = await lookUp(ref);
        return { applicationId, lastSequence, socketKeyFingerprint: keyFingerprint };
      }),
    );
    expect(expected.map(({ lastSequence }) => lastSequence)).toEqual([2n, 1n, 0n]);
    expect(await statesOf(...sorted(...refs))).toMatchObject(
      expected.toSorted((a, b) => (a.applicationId < b.applicationId ? -1 : 1)),
    );
  });

  it('change with the socket key, and not with the HTTP key', async () => {
    const ref = await apps.createOwned();
    const fingerprint = async () => (await statesOf(ref.applicationId))[0]?.socketKeyFingerprint;
    const first = await fingerprint();
    expect(first).toMatch(/^[\w-]{12}$/);
    await apps.client.rotateRuntimeKey({ ...ref, type: 2 });
    expect(await fingerprint()).toBe(first);
    await apps.client.rotateRuntimeKey({ ...ref, type: 1 });
    expect(await fingerprint()).not.toBe(first);
    expect(await fingerprint()).toBe((await lookUp(ref)).keyFingerprint);
  });

  it('are absent for what was deleted, never was, or is no id; each id is answered once', async () => {
    const [ref, deleted] = [await apps.createOwned(), await apps.createOwned()];
    await apps.client.deleteApplication(deleted);
    const ids = [deleted.applicationId, randomUUID(), '', 'x', '\0', '\ud800', '%', "' or true", `${ref.applicationId}0`];
    expect(await statesOf(...ids)).toEqual([]);
    const states = await statesOf(...ids, ref.applicationId, ref.applicationId.toUpperCase(), ref.applicationId);
    expect(states.map(({ applicationId }) => applicationId)).toEqual([ref.applicationId]);
  });

  it('are read with one statement, and none where no id is one', async () => {
    const refs = await Promise.all([apps.createOwned(), apps.createOwned()]);
    expect(await statementsOf(() => statesOf(...sorted(...refs)))).toHaveLength(1);
    expect(await statementsOf(() => statesOf())).toEqual([]);
    expect(await statementsOf(() => statesOf('x', ''))).toEqual([]);
  });

  it('are given for 1,000 ids at most, whatever they are', async () => {
    const ref = await apps.createOwned();
    const ids = [...Array.from({ length: 999 }, () => randomUUID()), ref.applicationId];
    expect(await statesOf(...ids)).toHaveLength(1);
    const invalid = { reason: 'page_token_invalid', kind: 'malformed', code: 'VALIDATION_ERROR' };
    for (const more of [randomUUID(), ref.applicationId, 'x']) {
      expect(await refusalOf(statesOf(...ids, more))).toMatchObject(invalid);
    }
  });
});
