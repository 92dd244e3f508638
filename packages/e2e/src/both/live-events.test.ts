import { eventually } from '@latchkey/testkit/eventually';
import { beforeAll, beforeEach, expect, inject, it, onTestFinished } from 'vitest';
import type { Api } from '../client/api.ts';
import { createApplication, createKey, signUp } from '../client/caller.ts';
import { LiveClient, readSocketKey, setSetting } from '../client/live.ts';
import { findLogLines } from '../instance/instance.ts';
import '../instance/shared-instance.ts';

/** R6: every connected client receives each committed change, in order, and nothing else. */
const { realtimeUrl, logDir } = inject('latchkeyInstance');
const TIMEOUT = { timeoutMs: 10_000 };
const SETTINGS = '/api/v1/panel/get-application-settings';

let api: Api;
let applicationId: string;
let socketKey: string;
beforeAll(async () => {
  ({ api } = await createKey(await signUp()));
});
beforeEach(async () => {
  applicationId = await createApplication(api);
  socketKey = await readSocketKey(api, applicationId);
});

async function listen(key = socketKey, lastEventId?: string): Promise<LiveClient> {
  const client = new LiveClient(realtimeUrl, key, lastEventId);
  onTestFinished(() => {
    client.ws.terminate();
    expect(client.flaws).toEqual([]);
  });
  await client.ready();
  return client;
}

const set = async (field: string, value: unknown, id = applicationId) => (await setSetting(api, id, field, value)).status;
const remove = async () => (await api.delete('/api/v1/panel/delete-application', { applicationId, code: '' })).status;

it('all clients receive a pause, a new version, a resume and the deletion, are closed then, and rejected afterwards', async () => {
  const clients = [await listen(), await listen()];
  const initial = { status: 'online', version: '1.0', lastSequence: '0', resumed: false };
  expect(clients[0]?.frames[0]?.data).toEqual({ applicationId, name: expect.stringMatching(/^app-/), ...initial });
  // Neither a change of nothing nor one of another application is sent.
  const other = await createApplication(api);
  for (const [field, value, id] of [
    ['status', 'paused'],
    ['status', 'paused'],
    ['applicationUserRequiresLicense', true],
    ['version', '3.0', other],
    ['version', '2.0'],
    ['status', 'online'],
  ] as const)
    expect(await set(field, value, id)).toBe(200);
  expect(await remove()).toBe(200);
  for (const client of clients) {
    expect(await client.ended).toBe(4102);
    expect(client.received()).toEqual(['paused', 'version_changed 2.0', 'resumed', 'deleted']);
    expect(client.sequences()).toEqual([1, 2, 3, 4]);
    expect(client.events[0]).toMatchObject({ source: `/applications/${applicationId}`, data: { status: 'paused' } });
    expect(client.events.slice(1, 3).map(({ data }) => data)).toEqual([
      { version: '2.0', previousVersion: '1.0' },
      { status: 'online' },
    ]);
  }
  expect(new Set(clients.map(({ frames: [, event] }) => event?.id)).size).toBe(1);
  expect(await new LiveClient(realtimeUrl, socketKey).ended).toBe(401);
});

it('15 changes at the same time are received in the order in which they were made, and replayed to a client that resumes', async () => {
  const clients = [await listen(), await listen()];
  const answers = await Promise.all(Array.from({ length: 15 }, (_, i) => set('version', `v${i}`)));
  expect(new Set(answers)).toEqual(new Set([200]));
  for (const client of clients) {
    await eventually(() => client.events.length === 15, TIMEOUT);
    expect(client.sequences()).toEqual(Array.from({ length: 15 }, (_, i) => i + 1));
    // Each follows from the one before, so no other order is right.
    const versions = client.events.map(({ data }) => data.version);
    expect(client.events.map(({ data }) => data.previousVersion)).toEqual(['1.0', ...versions.slice(0, -1)]);
    expect(versions.at(-1)).toBe((await api.get(SETTINGS, { applicationId })).data.version);
  }
  const back = await listen(socketKey, '5');
  await eventually(() => expect(back.sequences()).toEqual(Array.from({ length: 10 }, (_, i) => i + 6)), TIMEOUT);
  expect(back.frames[0]?.data.resumed).toBe(true);
});

it('a rotation of the socket key closes its clients with 4103 and no others; one of the HTTP key closes none', async () => {
  const old = await listen();
  const rotate = async (type: string) => (await api.patch('/api/v1/panel/update-api-keys', { type }, { applicationId })).status;
  expect(await rotate('httpKey')).toBe(200);
  await set('version', 'still here');
  await eventually(() => expect(old.received()).toEqual(['version_changed still here']), TIMEOUT);
  expect(await rotate('socketKey')).toBe(200);
  const fresh = await listen(await readSocketKey(api, applicationId), '0');
  expect([await old.ended, await new LiveClient(realtimeUrl, socketKey).ended]).toEqual([4103, 401]);
  // A third rotation within the hour is rejected, and changes nothing.
  expect(await rotate('socketKey')).toBe(429);
  await set('version', 'after');
  await eventually(() => expect(fresh.received()).toEqual(['version_changed still here', 'version_changed after']), TIMEOUT);
});

it('a rotation with an overlap accepts both keys, and shows the old one, until it is ended', async () => {
  const old = await listen();
  const body = { type: 'socketKey', overlapSeconds: 3_600 };
  const rotate = (more: object = {}) => api.patch('/api/v1/panel/update-api-keys', { ...body, ...more }, { applicationId });
  expect((await rotate()).status).toBe(200);
  const expiring = { type: 'latchkey.connection.key_expiring', data: { expiresAt: expect.any(String) } };
  await eventually(() => expect(old.frames.slice(1)).toMatchObject([expiring]), TIMEOUT);
  const late = await listen();
  const { data } = await api.get('/api/v1/panel/get-applications');
  const { applicationApiKeys } = data.find(({ id }: { id: string }) => id === applicationId);
  expect(applicationApiKeys.previousSocketKey).toEqual({
    expiresAt: old.frames[1]?.data.expiresAt,
    lastUsedAt: expect.any(String),
  });
  expect(await rotate()).toMatchObject({ status: 409, code: 'overlap_active' });
  expect((await rotate({ overlapSeconds: 604_801 })).status).toBe(400);
  expect((await api.post('/api/v1/panel/end-key-overlap', { type: 'socketKey' }, { applicationId })).status).toBe(200);
  expect(await Promise.all([old.ended, late.ended])).toEqual([4103, 4103]);
  expect(await new LiveClient(realtimeUrl, socketKey).ended).toBe(401);
});

it('a socket key is in no log, however it is sent', async () => {
  await listen();
  const wrongKey = `lk_sock_${'Z'.repeat(32)}`;
  const httpUrl = realtimeUrl.replace('ws:', 'http:');
  const ways = [socketKey, wrongKey].flatMap((key) => [
    fetch(`${httpUrl}/${key}?key=${key}`, { headers: { authorization: `Bearer ${key}` } }),
    new LiveClient(`${realtimeUrl}?lastEventId=${key}&key=${key}`, key, key).ended,
  ]);
  await remove();
  await Promise.all(ways);
  await eventually(async () => expect((await findLogLines(logDir, applicationId)).join()).toContain('socket closed'), TIMEOUT);
  for (const key of [socketKey, wrongKey]) {
    const secret = Buffer.from(key.slice('lk_sock_'.length));
    for (const encoding of ['utf8', 'base64', 'hex'] as const)
      expect(await findLogLines(logDir, secret.toString(encoding))).toEqual([]);
  }
});
