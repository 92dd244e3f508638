import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '@latchkey/testkit/eventually';
import { expect, inject, it, onTestFinished } from 'vitest';
import { createApplication, createKey, type Owner, signUp } from '../client/caller.ts';
import { upload } from '../client/files.ts';
import { LiveClient, readSocketKey, setSetting } from '../client/live.ts';
import '../instance/shared-instance.ts';

const { baseUrl, realtimeUrl } = inject('latchkeyInstance');
const PANEL = '/api/v1/panel';
/** Longest delay of a change on an open page. */
const WITHIN = { timeoutMs: 2_000 };

/** Opens the stream of changes of a session until the test ends. */
async function follow({ cookie }: Pick<Owner, 'cookie'>) {
  const controller = new AbortController();
  onTestFinished(() => controller.abort());
  const response = await fetch(`${baseUrl}/api/v1/auth/changes`, { headers: { cookie }, signal: controller.signal });
  const stream = { status: response.status, changes: [] as object[], hasEnded: false, close: () => controller.abort() };
  if (response.status !== 200) return stream;
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  const read = async () => {
    let text = '';
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const line = text.slice(0, end);
        if (line.startsWith('data: ')) stream.changes.push(JSON.parse(line.slice('data: '.length)));
        text = text.slice(end + 2);
      }
    }
    stream.hasEnded = true;
  };
  void read().catch(() => undefined);
  return stream;
}

it('a session follows the changes of its account, and those of no other, until it ends', async () => {
  const [owner, other] = await Promise.all([signUp(), signUp()]);
  const [stream, foreign] = await Promise.all([follow(owner), follow(other)]);
  const { api } = await createKey(owner);
  const applicationId = await createApplication(api);
  await setSetting(api, applicationId, 'status', 'paused');
  await upload(api, applicationId, 'a.txt');
  const expected = [{ kind: 'api_key' }, { kind: 'application', applicationId }, { kind: 'file', applicationId }];
  await eventually(() => expect(stream.changes).toEqual(expect.arrayContaining(expected)), WITHIN);
  expect(foreign.changes).toEqual([]);
  await owner.session.post('/api/v1/auth/sign-out');
  await eventually(() => expect(stream.hasEnded).toBe(true), WITHIN);
  expect(foreign.hasEnded).toBe(false);
});

it('a session learns that an application has another number of live clients', async () => {
  const owner = await signUp();
  const applicationId = await createApplication(owner.session);
  const stream = await follow(owner);
  const expectClients = async (clients: number) => {
    await eventually(() => expect(stream.changes).toContainEqual({ kind: 'live_clients', applicationId }), {
      timeoutMs: 10_000,
    });
    stream.changes.length = 0;
    expect((await owner.session.get(`${PANEL}/get-live-clients`, { applicationId })).data).toEqual({ clients });
  };
  const { ws } = new LiveClient(realtimeUrl, await readSocketKey(owner.session, applicationId));
  onTestFinished(() => ws.terminate());
  await expectClients(1);
  ws.close();
  await expectClients(0);
});

it('a session has four streams at most; a key, and no credential, has none', async () => {
  const owner = await signUp();
  const head = () => fetch(`${baseUrl}/api/v1/auth/changes`, { method: 'HEAD', headers: { cookie: owner.cookie } });
  for (const { status } of await Promise.all([1, 2, 3, 4].map(head))) expect(status).toBe(200);
  const [first] = await Promise.all([1, 2, 3, 4].map(() => follow(owner)));
  expect((await owner.session.get('/api/v1/auth/changes')).status).toBe(429);
  first?.close();
  await eventually(async () => expect((await follow(owner)).status).toBe(200));
  const { api } = await createKey(owner);
  expect(await api.get('/api/v1/auth/changes')).toMatchObject({ status: 403, code: 'session_required' });
  expect((await follow({ cookie: '' })).status).toBe(401);
});

it('events are pulled from where the last answer ended, and waited for', async () => {
  const { api } = await createKey(await signUp());
  const applicationId = await createApplication(api);
  const pull = async (query: Record<string, string>) => (await api.get(`${PANEL}/events`, { applicationId, ...query })).data;
  const { next: start, ...none } = await pull({});
  expect(none).toEqual({ events: [], gap: false });
  const waiting = pull({ after: start, waitSeconds: '25' });
  const [epoch] = start.split(':');
  await setSetting(api, applicationId, 'version', '2.0');
  const { events, next, gap } = await waiting;
  expect({ events, next, gap }).toEqual({
    events: [
      {
        specversion: '1.0',
        id: expect.any(String),
        source: `/applications/${applicationId}`,
        type: 'latchkey.application.version_changed',
        time: expect.any(String),
        datacontenttype: 'application/json',
        epoch,
        sequence: '1',
        data: { version: '2.0', previousVersion: '1.0' },
      },
    ],
    next: `${epoch}:1`,
    gap: false,
  });
  expect(await pull({ after: next, waitSeconds: '1' })).toEqual({ events: [], next, gap: false });
  expect(await pull({ after: `other:1`, waitSeconds: '25' })).toMatchObject({ events: [{ sequence: '1' }], next, gap: true });
  for (const query of [{ after: '1' }, { after: `${epoch}:x` }, { waitSeconds: '26' }, { waitSeconds: '' }])
    expect(await api.get(`${PANEL}/events`, { applicationId, ...query })).toMatchObject({ code: 'VALIDATION_ERROR' });
});

it('a key that is revoked, narrowed or restricted while its request waits gets no more events', async () => {
  const owner = await signUp();
  const [applicationId, other] = [await createApplication(owner.session), await createApplication(owner.session)];
  const path = (id: string) => `${PANEL}/api-keys/${id}`;
  for (const [code, change] of [
    ['api_key_revoked', (id: string) => owner.session.post(`${path(id)}/revoke`, {})],
    ['insufficient_scope', (id: string) => owner.session.patch(path(id), { scopes: ['files:read'] })],
    ['application_forbidden', (id: string) => owner.session.patch(path(id), { allApplications: false, applicationIds: [other] })],
  ] as const) {
    const { id, api } = await createKey(owner);
    const { next } = (await api.get(`${PANEL}/events`, { applicationId })).data;
    const waiting = api.get(`${PANEL}/events`, { applicationId, after: next, waitSeconds: '25' });
    expect(await Promise.race([waiting, sleep(200)])).toBe(undefined);
    await change(id);
    expect(await Promise.race([waiting, sleep(2_000)])).toMatchObject({ code });
  }
});
