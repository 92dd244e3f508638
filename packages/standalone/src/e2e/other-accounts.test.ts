import { beforeAll, describe, expect, it } from 'vitest';
import type { Answer, Api, SendOptions } from '../testing/api.ts';
import { createApplication, createKey, type Key, type Owner, readState, signUp } from '../testing/caller.ts';
import { APPLICATION_ROUTES, nameOf } from '../testing/routes.ts';

/** Promises S1: whatever is not the caller's is told apart from what never existed by nothing in the answer. */
let owner: Owner;
let stranger: Owner;
let own: string;
let foreign: string;
let deleted: string;
let foreignKey: Key;
const callers: Record<string, Api> = {};

const NEVER = '01900000-0000-7000-8000-00000000dead';

beforeAll(async () => {
  [owner, stranger] = await Promise.all([signUp(), signUp()]);
  own = await createApplication(owner.session);
  foreign = await createApplication(stranger.session);
  foreignKey = await createKey(stranger);
  deleted = await createApplication(owner.session);
  await owner.session.delete('/api/v1/panel/delete-application', { applicationId: deleted, code: '' });
  callers.session = owner.session;
  callers.key = (await createKey(owner)).api;
  callers['restricted key'] = (await createKey(owner, { applicationIds: [own] })).api;
});

/** Ids that name nothing of the account's. */
const ids = (): Record<string, string> => ({
  'of another account': foreign,
  'of another account in capitals': foreign.toUpperCase(),
  'of a deleted application': deleted,
  'of an account': owner.accountId,
  empty: '',
  'that is no UUID': 'abc',
  'with something behind it': `${own}x`,
  'with a blank': `${own} `,
  'without dashes': own.replaceAll('-', ''),
  'in braces': `{${own}}`,
  'with NUL': `${own}\0`,
  'NUL alone': '\0',
  'of wide digits': '０'.repeat(36),
  'of a quote': "' OR 1=1 --",
  'of a number': '1',
  'of a path': '../../etc/passwd',
  nil: '00000000-0000-0000-0000-000000000000',
  max: 'ffffffff-ffff-ffff-ffff-ffffffffffff',
  huge: 'a'.repeat(8_000),
});

/** A request by what it names. */
type Target = { readonly path: string } & SendOptions;

/** All of an answer that a caller can see, but for what differs from one request to the next anyway. */
function visible({ status, headers, text }: Answer): unknown {
  const changing = ['x-request-id', 'date', 'ratelimit', 'ratelimit-policy', 'keep-alive'];
  return { status, text, headers: [...headers].filter(([name]) => !changing.includes(name)) };
}

async function expectLikeNever(api: Api, method: string, at: (id: string) => Target, what: string) {
  const { path: neverPath, ...neverOptions } = at(NEVER);
  const never = await api.send(method, neverPath, neverOptions);
  expect([never.status, never.code], what).toEqual([404, 'not_found']);
  for (const [kind, id] of Object.entries(ids())) {
    const { path, ...options } = at(id);
    expect(visible(await api.send(method, path, options)), `${what}: an id ${kind}`).toEqual(visible(never));
  }
}

describe.each(APPLICATION_ROUTES.map((route) => [nameOf(route), route] as const))('%s', (_name, route) => {
  it('answers for an id that names nothing of the account as for one that never existed', async () => {
    const before = await Promise.all([readState(owner), readState(stranger)]);
    for (const [caller, api] of Object.entries(callers)) {
      await expectLikeNever(api, route.method, (id) => ({ path: route.path, ...route.request(id) }), caller);
    }
    expect(await Promise.all([readState(owner), readState(stranger)])).toEqual(before);
  });
});

describe('the API key routes', () => {
  const keyIds = () => ({ ...ids(), 'of another account': foreignKey.id, 'of a public id': foreignKey.record.publicId });

  it.each([
    [
      'PATCH',
      (id: string): Target => ({ path: `/api/v1/panel/api-keys/${encodeURIComponent(id)}`, body: { name: 'Taken over' } }),
    ],
    ['POST', (id: string): Target => ({ path: `/api/v1/panel/api-keys/${encodeURIComponent(id)}/revoke` })],
  ])('%s answers for an id that names nothing of the account as for one that never existed', async (method, at) => {
    const before = await Promise.all([readState(owner), readState(stranger)]);
    const never = await owner.session.send(method, at(NEVER).path, at(NEVER));
    for (const [kind, id] of Object.entries(keyIds())) {
      // An empty one names another route.
      if (id === '') continue;
      expect(visible(await owner.session.send(method, at(id).path, at(id))), kind).toEqual(visible(never));
    }
    expect(await Promise.all([readState(owner), readState(stranger)])).toEqual(before);
    expect((await foreignKey.api.get('/api/v1/panel/get-applications')).status).toBe(200);
  });

  it('refuse to restrict a key to what is not the account’s, as if it never existed', async () => {
    const body = (id: string) => ({
      name: 'Restricted',
      scopes: ['applications:read'],
      allApplications: false,
      applicationIds: [id],
    });
    const { id } = await createKey(owner, { applicationIds: [own] });
    const before = await readState(owner);
    const at = (applicationId: string) => ({ path: '/api/v1/panel/api-keys', body: body(applicationId) });
    await expectLikeNever(owner.session, 'POST', at, 'alone');
    const mixed = (other: string) => ({ path: '/api/v1/panel/api-keys', body: { ...body(own), applicationIds: [own, other] } });
    await expectLikeNever(owner.session, 'POST', mixed, 'beside an own one');
    const changed = (other: string) => ({ path: `/api/v1/panel/api-keys/${id}`, body: { applicationIds: [own, other] } });
    await expectLikeNever(owner.session, 'PATCH', changed, 'in a change');
    expect(await readState(owner)).toBe(before);
  });
});

describe('an own id', () => {
  it('may be written in capitals, and is the same one', async () => {
    const applicationId = own.toUpperCase();
    for (const api of Object.values(callers)) {
      expect((await api.get('/api/v1/panel/get-application-settings', { applicationId })).status).toBe(200);
    }
  });
});
