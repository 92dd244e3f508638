import { randomUUID } from 'node:crypto';
import { createLogger } from '@latchkey/kit/logger';
import { ApplicationStatus, type RuntimeKeys } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { refusalOf } from '@latchkey/testkit/refusal';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dump } from '../testing/dump.ts';
import { encodingsOf } from '../testing/encodings.ts';
import { everything } from '../testing/rows.ts';
import { createInstance, type OwnedRef, startTestApps, type TestApps } from '../testing/test-apps.ts';

let apps: TestApps;
beforeAll(async () => {
  apps = await startTestApps();
});
afterAll(() => apps.stop());

const INVALID = {
  connectCode: 'Unauthenticated',
  message: 'The runtime key is not valid',
  reason: 'runtime_key_invalid',
  kind: 'unauthenticated',
  code: 'api_key_invalid',
  metadata: {},
  detailCount: 1,
  headers: {},
};
const OTHER_SECRET_KEY = 'other-secret-key-of-32-characters';

type KeyName = 'socketKey' | 'httpKey';
const lookUp = (name: KeyName, value: string) => apps.client.lookUpApplication({ key: { case: name, value } });

async function keysOf({ accountId, applicationId }: OwnedRef): Promise<RuntimeKeys> {
  const { applications } = await apps.client.listApplications({ accountId, filter: { applicationIds: [applicationId] } });
  const keys = applications[0]?.runtimeKeys;
  if (!keys) throw new Error('The application has no keys');
  return keys;
}

describe('a runtime key', () => {
  it.each(['socketKey', 'httpKey'] as const)('finds its application as it is now: %s', async (name) => {
    const ref = await apps.createOwned('Found by key');
    const key = (await keysOf(ref))[name];
    const settings = { version: '1.0', status: ApplicationStatus.ONLINE, userRequiresLicense: false };
    expect(await lookUp(name, key)).toMatchObject({ ...ref, name: 'Found by key', settings, lastSequence: 0n });
    await apps.client.updateApplicationSetting({ ...ref, field: 'status', value: { case: 'stringValue', value: 'paused' } });
    await apps.client.updateApplicationSetting({
      ...ref,
      field: 'applicationUserRequiresLicense',
      value: { case: 'boolValue', value: true },
    });
    const changed = { version: '1.0', status: ApplicationStatus.PAUSED, userRequiresLicense: true };
    expect(await lookUp(name, key)).toMatchObject({ ...ref, settings: changed, lastSequence: 1n });
  });

  it.each(['socketKey', 'httpKey'] as const)(
    'has a fingerprint of its own, that is another after a rotation: %s',
    async (name) => {
      const [ref, other] = [await apps.createOwned(), await apps.createOwned()];
      const fingerprints: string[] = [];
      const keep = async (of: OwnedRef, type: KeyName) =>
        void fingerprints.push((await lookUp(type, (await keysOf(of))[type])).keyFingerprint);
      await keep(ref, name);
      await apps.client.updateApplicationSetting({ ...ref, field: 'version', value: { case: 'stringValue', value: '2.0' } });
      await keep(ref, name);
      expect(fingerprints[0]).toBe(fingerprints.pop());
      await keep(other, name);
      for (const type of ['socketKey', 'httpKey'] as const) if (type !== name) await keep(ref, type);
      await apps.client.rotateRuntimeKey({ ...ref, type: name === 'socketKey' ? 1 : 2 });
      await keep(ref, name);
      expect(new Set(fingerprints).size).toBe(4);
      const { rows } = await apps.db.query<{ hash: Buffer }>(
        `select ${name === 'socketKey' ? 'socket' : 'http'}_key_hash as hash from application where id = $1`,
        [ref.applicationId],
      );
      expect(Buffer.from(fingerprints.at(-1) ?? '', 'base64url')).toEqual(rows[0]?.hash.subarray(0, 9));
    },
  );

  it('is refused with one and the same answer, whatever is wrong with it, and nothing changes', async () => {
    const { socketKey, httpKey } = await keysOf(await apps.createOwned());
    const { applicationId } = await apps.createOwned();
    const before = await everything(apps.db);
    const random = socketKey.slice(8);
    const texts = [
      '',
      random,
      `lk_sock_${'0'.repeat(32)}`,
      `lk_sock_${random.slice(1)}`,
      `${socketKey}0`,
      `${socketKey}\n`,
      ` ${socketKey}`,
      `${socketKey}\0`,
      `${socketKey.slice(0, -1)}\ud800`,
      `LK_SOCK_${random}`,
      `lk_mgmt_${random}`,
      `lk_sock_${random.slice(0, -1)}%`,
      socketKey.replace(/[a-z](?=[^a-z]*$)/, (letter) => letter.toUpperCase()),
      applicationId,
      socketKey.repeat(10_000),
    ];
    const calls = [
      apps.client.lookUpApplication({}),
      lookUp('httpKey', socketKey),
      lookUp('socketKey', httpKey),
      lookUp('httpKey', `lk_http_${random}`),
      ...texts.flatMap((text) => [lookUp('socketKey', text), lookUp('httpKey', text)]),
    ];
    for (const call of calls.map(refusalOf)) expect(await call).toEqual(INVALID);
    expect(await everything(apps.db)).toEqual(before);
  });
});

describe('runtime keys at rest', () => {
  it('stand nowhere in the database, in no encoding, nor what they were before a rotation', async () => {
    const ref = await apps.createOwned();
    const keys = [await keysOf(ref)];
    for (const type of [1, 2]) await apps.client.rotateRuntimeKey({ ...ref, type });
    keys.push(await keysOf(ref));
    const texts = keys.flatMap(({ socketKey, httpKey }) => [socketKey.slice(8), httpKey.slice(8)]);
    const text = await dump(apps.db);
    for (const key of texts) for (const encoded of encodingsOf(key)) expect(text).not.toContain(encoded);
  });

  it.each<[string, (key: string) => string]>([
    ['in clear', (key) => `<${key}>`],
    ['backwards', (key) => [...key].reverse().join('')],
    ['in hex', (key) => Buffer.from(key).toString('hex')],
    ['in base64', (key) => Buffer.from(`x${key}yz`).toString('base64')],
    ['in base64url', (key) => Buffer.from(`xy${key}z`).toString('base64url')],
  ])('would be found by that search %s', async (_, encode) => {
    const ref = await apps.createOwned();
    const key = (await keysOf(ref)).socketKey.slice(8);
    const value = { case: 'stringValue', value: encode(key) } as const;
    await apps.client.updateApplicationSetting({ ...ref, field: 'version', value });
    const text = await dump(apps.db);
    expect(encodingsOf(key).some((encoded) => text.includes(encoded))).toBe(true);
  });

  it('are sealed anew each time: no two ciphertexts or hashes are the same', async () => {
    const { accountId } = await apps.createOwned();
    for (let i = 0; i < 10; i += 1) await apps.client.createApplication({ accountId, name: 'Application' });
    const { rows } = await apps.db.query<Record<string, Buffer>>(
      'select socket_key_hash, http_key_hash, socket_key_sealed, http_key_sealed from application where account_id = $1',
      [accountId],
    );
    const values = rows.flatMap((row) => Object.values(row).map((value) => value.toString('hex')));
    expect(new Set(values).size).toBe(rows.length * 4);
  });

  it.each([
    ['another application', 'socket_key_sealed = (select socket_key_sealed from application where id = $2)'],
    ['the other type', 'socket_key_sealed = http_key_sealed where $2::uuid is not null and id = $1 --'],
    ['another application’s other type', 'http_key_sealed = (select socket_key_sealed from application where id = $2)'],
    [
      'a changed byte',
      'http_key_sealed = set_byte(http_key_sealed, 30, 255 - get_byte(http_key_sealed, 30)) where $2::uuid is not null and id = $1 --',
    ],
    ['a cut-off end', 'http_key_sealed = substring(http_key_sealed for 40) where $2::uuid is not null and id = $1 --'],
    ['no bytes', `http_key_sealed = '' where $2::uuid is not null and id = $1 --`],
  ])('open only for their application and type, and else for nobody: %s', async (_, change) => {
    const [ref, other] = await Promise.all([apps.createOwned(), apps.createOwned()]);
    await apps.db.query(`update application set ${change} where id = $1`, [ref.applicationId, other.applicationId]);
    const refusal = await refusalOf(apps.client.listApplications({ accountId: ref.accountId }));
    expect(refusal).toMatchObject({ connectCode: 'Internal', message: 'internal error', detailCount: 0 });
    expect((await keysOf(other)).socketKey).toMatch(/^lk_sock_/);
  });

  it('stand in no log line, at any level', async () => {
    const lines: string[] = [];
    const logger = createLogger('apps', 'trace', { write: (line) => void lines.push(line) });
    const { client } = apps.connect({ logger });
    const ref = await apps.createOwned();
    const keys = [await keysOf(ref)];
    await client.listApplications({ accountId: ref.accountId });
    for (const { socketKey, httpKey } of keys) {
      await client.lookUpApplication({ key: { case: 'socketKey', value: socketKey } });
      await client.lookUpApplication({ key: { case: 'httpKey', value: httpKey } });
      await refusalOf(client.lookUpApplication({ key: { case: 'httpKey', value: socketKey } }));
    }
    for (const type of [1, 1, 1]) await client.rotateRuntimeKey({ ...ref, type }).catch(() => undefined);
    keys.push(await keysOf(ref));
    await apps.db.query('update application set http_key_sealed = socket_key_sealed where id = $1', [ref.applicationId]);
    await refusalOf(client.listApplications({ accountId: ref.accountId }));
    expect(lines.length).toBeGreaterThanOrEqual(7);
    const text = lines.join('\n');
    for (const { socketKey, httpKey } of keys) {
      for (const key of [socketKey, httpKey]) expect(text).not.toContain(key.slice(8));
    }
  });
});

describe('SECRET_KEY', () => {
  it('must be the one that the keys were sealed under, or the service does not start', async () => {
    await apps.createOwned();
    const wrong = apps.connect({ env: { SECRET_KEY: OTHER_SECRET_KEY } });
    await expect(wrong.service.start()).rejects.toThrow('SECRET_KEY is not the one that this database was written with');
    await expect(apps.connect().service.start()).resolves.toBeUndefined();
  });

  it('opens and finds nothing when it is another, even if the service were started', async () => {
    const ref = await apps.createOwned();
    const { socketKey } = await keysOf(ref);
    const { client } = apps.connect({ env: { SECRET_KEY: OTHER_SECRET_KEY } });
    expect(await refusalOf(client.listApplications({ accountId: ref.accountId }))).toMatchObject({ connectCode: 'Internal' });
    expect(await refusalOf(client.lookUpApplication({ key: { case: 'socketKey', value: socketKey } }))).toEqual(INVALID);
  });

  it('may be any while there is no application', async () => {
    const fresh = await startTestApps();
    const other = createInstance(fresh.url, { env: { SECRET_KEY: OTHER_SECRET_KEY } });
    await expect(other.service.start()).resolves.toBeUndefined();
    expect((await other.client.listApplications({ accountId: randomUUID() })).applications).toEqual([]);
    await other.service.stop();
    await fresh.stop();
  });
});
