import { createDecipheriv } from 'node:crypto';
import { ApplicationStatus } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { refusalOf } from '@latchkey/testkit/refusal';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { everything } from '../testing/rows.ts';
import { startTestApps, useTestApps } from '../testing/test-apps.ts';
import { Vault } from './runtime-key-text.ts';

vi.mock('node:crypto', { spy: true });

const apps = useTestApps();

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
const NAMES = ['socketKey', 'httpKey'] as const;

type KeyName = (typeof NAMES)[number];
const lookUp = (name: KeyName, value: string) => apps.client.lookUpApplication({ key: { case: name, value } });

describe('a runtime key', () => {
  it.each(NAMES)('finds its application with its current state: %s', async (name) => {
    const ref = await apps.createOwned('Found by key');
    const { [name]: key } = await apps.keysOf(ref);
    const settings = { version: '1.0', status: ApplicationStatus.ONLINE, userRequiresLicense: false };
    expect(await lookUp(name, key)).toMatchObject({ ...ref, name: 'Found by key', settings, lastSequence: 0n });
    await apps.set(ref, 'status', 'paused');
    await apps.set(ref, 'user_requires_license', true);
    const changed = { version: '1.0', status: ApplicationStatus.PAUSED, userRequiresLicense: true };
    expect(await lookUp(name, key)).toMatchObject({ ...ref, settings: changed, lastSequence: 1n });
  });

  it('is rejected with one response, whatever is wrong with it, and nothing changes', async () => {
    const { socketKey, httpKey } = await apps.keysOf(await apps.createOwned());
    const before = await everything(apps.db);
    const random = socketKey.slice(8);
    const texts = [
      '',
      random,
      `lk_sock_${'0'.repeat(32)}`,
      `${socketKey}0`,
      ` ${socketKey}`,
      `${socketKey}\0`,
      `lk_mgmt_${random}`,
      `lk_sock_${random.slice(0, -1)}%`,
      socketKey.repeat(10_000),
    ];
    const calls = [
      apps.client.lookUpApplication({}),
      lookUp('httpKey', socketKey),
      lookUp('socketKey', httpKey),
      ...texts.flatMap((text) => NAMES.map((name) => lookUp(name, text))),
    ];
    for (const call of calls.map(refusalOf)) expect(await call).toEqual(INVALID);
    expect(await everything(apps.db)).toEqual(before);
  });
});

describe('a stored runtime key', () => {
  it.each([
    ['of another application', 'socket_key_sealed = (select socket_key_sealed from application where id = $2)'],
    ['of the other type', 'socket_key_sealed = http_key_sealed'],
    ['with a changed byte', 'http_key_sealed = set_byte(http_key_sealed, 30, 255 - get_byte(http_key_sealed, 30))'],
    ['without its end', 'http_key_sealed = substring(http_key_sealed for 40)'],
  ])('does not open as one %s', async (_, change) => {
    const [ref, other] = await Promise.all([apps.createOwned(), apps.createOwned()]);
    const where = 'where id = $1 and $2::uuid is not null';
    await apps.db.query(`update application set ${change} ${where}`, [ref.applicationId, other.applicationId]);
    const internal = { connectCode: 'Internal', message: 'internal error', detailCount: 0 };
    expect(await refusalOf(apps.client.listApplications(ref))).toMatchObject(internal);
    expect((await apps.keysOf(other)).socketKey).toMatch(/^lk_sock_/);
  });

  it('is decrypted once, however often it is opened', () => {
    const vault = new Vault('a deployment secret of 32 letters');
    const keys = Array.from({ length: 200 }, (_, i) => vault.create('socketKey', `application ${i}`));
    const before = vi.mocked(createDecipheriv).mock.calls.length;
    for (let round = 0; round < 3; round += 1)
      keys.forEach(({ text, sealed }, i) => {
        expect(vault.open('socketKey', `application ${i}`, sealed.toString('hex'))).toBe(text);
      });
    expect(vi.mocked(createDecipheriv).mock.calls.length - before).toBe(200);
  });
});

describe('SECRET_KEY', () => {
  it('must be the one that sealed the keys, or the service does not start and opens nothing', async () => {
    const ref = await apps.createOwned();
    const { socketKey } = await apps.keysOf(ref);
    const { service, client } = apps.connect({ env: { SECRET_KEY: OTHER_SECRET_KEY } });
    await expect(service.start()).rejects.toThrow('SECRET_KEY is not the one that this database was written with');
    expect(await refusalOf(client.listApplications(ref))).toMatchObject({ connectCode: 'Internal' });
    expect(await refusalOf(client.lookUpApplication({ key: { case: 'socketKey', value: socketKey } }))).toEqual(INVALID);
    await expect(apps.connect().service.start()).resolves.toBeUndefined();
  });

  it('may be any while there is no application, and is checked once there is', async () => {
    const fresh = await startTestApps(false);
    onTestFinished(() => fresh.stop());
    const [early, late] = [1, 2].map(() => fresh.connect({ env: { SECRET_KEY: OTHER_SECRET_KEY } }).service);
    await early?.start();
    await fresh.service.migrate();
    await late?.start();
    await fresh.createOwned();
    await expect(early?.checkReady()).rejects.toThrow('SECRET_KEY is not');
  });
});
