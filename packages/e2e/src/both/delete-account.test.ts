import { eventually } from '@latchkey/testkit/eventually';
import { expect, inject, it } from 'vitest';
import { createApplication, createKey, PASSWORD, sharedApi, signUp } from '../client/caller.ts';
import { outcome, upload } from '../client/files.ts';
import { LiveClient, readSocketKey } from '../client/live.ts';
import { signInTo } from '../client/two-factor.ts';

const ACCOUNT = '/api/v1/auth/account';
const { realtimeUrl } = inject('latchkeyInstance');

it('a deleted account is gone with all it owns, and its live clients are notified', async () => {
  const owner = await signUp();
  const { username, email } = owner;
  const second = await signInTo(sharedApi(), owner);
  const key = await createKey(owner);
  const [first, other] = [await createApplication(owner.session), await createApplication(owner.session)];
  const { data: file } = await upload(owner.session, first, 'gone');
  const created = await owner.session.post('/api/v1/panel/create-download-url', { fileId: file.id }, { applicationId: first });
  const socketKeys = await Promise.all([first, other].map((id) => readSocketKey(owner.session, id)));
  const clients = socketKeys.map((socketKey) => new LiveClient(realtimeUrl, socketKey));
  for (const client of clients) await client.ready();
  const deleted = await owner.session.delete(ACCOUNT, { password: PASSWORD });
  expect([outcome(deleted), deleted.message]).toEqual(['200', 'Account deleted.']);
  expect(deleted.headers.get('set-cookie')).toMatch(/^session=; Max-Age=0; /);
  const cookie = (second.headers.get('set-cookie') ?? '').split(';', 1)[0] as string;
  for (const api of [owner.session, sharedApi().with({ cookie })])
    expect(outcome(await api.get('/api/v1/auth/session'))).toBe('401 unauth');
  expect(outcome(await key.api.get('/api/v1/panel/get-applications'))).toBe('401 api_key_invalid');
  for (const socketKey of socketKeys) expect(await new LiveClient(realtimeUrl, socketKey).ended).toBe(401);
  for (const client of clients) {
    expect(await client.ended).toBe(4102);
    expect([client.events.map(({ type }) => type), client.flaws]).toEqual([['latchkey.application.deleted'], []]);
  }
  await eventually(async () => expect((await fetch(created.data.url)).status).toBe(404), { timeoutMs: 10_000 });
  expect(outcome(await signInTo(sharedApi(), owner))).toBe('401 unauth');
  expect(outcome(await sharedApi().post('/api/v1/auth/sign-up', { username, email, password: PASSWORD }))).toBe('200');
});
