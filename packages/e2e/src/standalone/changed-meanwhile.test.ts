import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { createApplication, createKey, signUp } from '../client/caller.ts';
import { outcome } from '../client/files.ts';

const PANEL = '/api/v1/panel';
const LEVELS = `${PANEL}/create-application-license-levels`;
const SETTINGS = `${PANEL}/update-application-settings`;

it.each([
  ['levels', 'POST', LEVELS, 'get-application-license-levels', [{ levels: ['a'] }, { levels: ['b'] }, { levels: ['c'] }]],
  ['settings', 'PATCH', SETTINGS, 'get-application-settings', ['2', '3', '4'].map((value) => ({ field: 'version', value }))],
] as const)(
  'of two editors of %s, the second learns that its state is old',
  async (_what, method, path, name, [first, second, third]) => {
    const { session } = await signUp();
    const query = { applicationId: await createApplication(session) };
    const read = () => session.get(`${PANEL}/${name}`, query);
    const change = async (body: object | undefined, match: string) =>
      outcome(await session.send(method, path, { query, body: body ?? null, headers: { 'if-match': match } }));
    const etag = (await read()).headers.get('etag') ?? '';
    expect(etag).toMatch(/^"[\w-]+"$/);
    expect(await change(first, `"other", ${etag}`)).toBe('200');
    const after = await read();
    expect(await change(second, etag)).toBe('412 changed_meanwhile');
    expect(await change(second, `W/${after.headers.get('etag')}`)).toBe('412 changed_meanwhile');
    expect((await read()).text).toBe(after.text);
    expect(await change(second, '*')).toBe('200');
    expect(outcome(await session.send(method, path, { query, body: third ?? null }))).toBe('200');
    for (const wrong of ['', 'etag', '"a" "b"', `"${'a'.repeat(1_100)}"`])
      expect(await change(second, wrong)).toBe('400 VALIDATION_ERROR');
  },
);

it('of two editors of a management key, the second learns that its state is old; a use of the key changes nothing', async () => {
  const owner = await signUp();
  const { id, api } = await createKey(owner);
  const path = `${PANEL}/api-keys/${id}`;
  const { headers, data } = await owner.session.get(path);
  const etag = headers.get('etag') ?? '';
  expect(data).toMatchObject({ id });
  expect((await api.get(`${PANEL}/get-applications`)).status).toBe(200);
  const change = (name: string, match: string) =>
    owner.session.send('PATCH', path, { body: { name }, headers: { 'if-match': match } });
  const changed = await change('first', etag);
  expect(outcome(changed)).toBe('200');
  expect(outcome(await change('second', etag))).toBe('412 changed_meanwhile');
  expect(outcome(await change('second', changed.headers.get('etag') ?? ''))).toBe('200');
  expect(outcome(await owner.session.get(`${PANEL}/api-keys/${randomUUID()}`))).toBe('404 not_found');
  const stranger = await signUp();
  expect(outcome(await stranger.session.get(path))).toBe('404 not_found');
});
