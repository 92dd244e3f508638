import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Answer, Api, SendOptions } from '../client/api.ts';
import { createApplication, createKey, type Key, type Owner, readState, signUp } from '../client/caller.ts';
import { ACTION, upload } from '../client/files.ts';
import { APPLICATION_ROUTES, KEY_ROUTES, NOTHING, nameOf, SESSION_ROUTES } from '../client/routes.ts';

/** S1: what is another account's has, byte for byte, the response of what never existed. */
const NEVER = '01900000-0000-7000-8000-00000000dead';
const KEYS = '/api/v1/panel/api-keys';
let owner: Owner;
let stranger: Owner;
let own: string;
let foreign: string;
let deleted: string;
let foreignKey: Key;
let foreignFile: string;
/** Restricted to another application than the others. */
let elsewhere: Api;
let states: string[];
const callers: Record<string, Api> = {};
const readStates = () => Promise.all([owner, stranger].map((one) => readState(one)));
/** None of the rejected requests has changed anything. */
const expectUnchanged = async () => expect(await readStates()).toEqual(states);
beforeAll(async () => {
  [owner, stranger] = await Promise.all([signUp(), signUp()]);
  [own, deleted] = [await createApplication(owner.session), await createApplication(owner.session)];
  foreign = await createApplication(stranger.session);
  foreignKey = await createKey(stranger);
  foreignFile = (await upload(stranger.session, foreign, 'private')).data.id;
  await owner.session.delete('/api/v1/panel/delete-application', { applicationId: deleted, code: '' });
  callers.session = owner.session;
  callers.key = (await createKey(owner)).api;
  callers['restricted key'] = (await createKey(owner, { applicationIds: [own] })).api;
  elsewhere = (await createKey(owner, { applicationIds: [await createApplication(owner.session)] })).api;
  states = await readStates();
});
/** Unknown ids. */
const ids = () => [
  ...[foreign, foreign.toUpperCase(), deleted, owner.accountId, foreignFile, foreignKey.id, foreignKey.record.publicId],
  '',
  'abc',
  `${own}x`,
  `${own} `,
  own.replaceAll('-', ''),
  `{${own}}`,
  `${own}\0`,
  '\0',
  '０'.repeat(36),
  "' OR 1=1 --",
  '1',
  ...['../../etc/passwd', '00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 'a'.repeat(8_000)],
];

/** A request by what it names. */
type Target = { readonly path: string } & SendOptions;

/** All that a caller can see of a response, but for what differs between any two. */
function visible({ status, headers, text }: Answer): unknown {
  const changing = ['x-request-id', 'date', 'ratelimit', 'ratelimit-policy', 'keep-alive'];
  return { status, text, headers: [...headers].filter(([name]) => !changing.includes(name)) };
}

async function expectLikeNever(api: Api, method: string, at: (id: string) => Target, all: readonly string[] = ids()) {
  const { path: neverPath, ...neverOptions } = at(NEVER);
  const never = await api.send(method, neverPath, neverOptions);
  expect([never.status, never.code]).toEqual([404, 'not_found']);
  for (const id of all) {
    const { path, ...options } = at(id);
    expect(visible(await api.send(method, path, options)), id).toEqual(visible(never));
  }
}

describe('every application route', () => {
  afterAll(expectUnchanged);

  it.each(APPLICATION_ROUTES.map((route) => [nameOf(route), route] as const))(
    '%s answers for every unknown id as for one that never existed',
    async (_name, route) => {
      for (const [i, api] of Object.values(callers).entries())
        await expectLikeNever(
          api,
          route.method,
          (id) => ({ path: route.path, ...route.request(id) }),
          i === 0 ? ids() : [foreign, deleted],
        );
    },
  );
});

it.each(['delete_file', 'change_file_name'])(
  '%s answers so for a file, in an own application, in its own and in another of its account',
  async (action) => {
    const at = (applicationId: string) => (fileId: string) => ({
      path: ACTION,
      query: { applicationId },
      body: { action, fileId, fileName: 'stolen' },
    });
    await expectLikeNever(owner.session, 'POST', at(own));
    await expectLikeNever(owner.session, 'POST', at(foreign), [foreignFile]);
    await expectUnchanged();
  },
);

/** Routes on something that is prepared, whose id is in their path. */
const ID_ROUTES = [...KEY_ROUTES, ...SESSION_ROUTES].filter(({ path, prepare }) => prepare && path.includes(NOTHING));

it.each(ID_ROUTES.map((route) => [nameOf(route), route] as const))(
  '%s answers so for what another account has, and for what has no UUID',
  async (_name, route) => {
    const { path = '', ...options } = (await route.prepare?.(stranger.session, foreign)) ?? {};
    const { path: ownPath = '' } = (await route.prepare?.(owner.session, own)) ?? {};
    states = await readStates();
    const at = (id: string) => ({ ...options, path: route.path.replace(NOTHING, id) });
    const foreignId = path.slice(route.path.indexOf(NOTHING), route.path.indexOf(NOTHING) + NOTHING.length);
    await expectLikeNever(owner.session, route.method, at, [foreignId, 'abc', '%00', encodeURIComponent("' OR 1=1 --")]);
    const answer = await elsewhere.send(route.method, ownPath, options);
    expect([answer.status, answer.code]).toEqual([403, route.scope ? 'application_forbidden' : 'session_required']);
    await expectUnchanged();
  },
);

it('a key can not be restricted to an application of another account, which has the same answer', async () => {
  const { id } = await createKey(owner, { applicationIds: [own] });
  states = await readStates();
  const body = { name: 'Restricted', scopes: ['applications:read'], allApplications: false };
  const create = (applicationIds: string[]) => ({ path: KEYS, body: { ...body, applicationIds } });
  await expectLikeNever(owner.session, 'POST', (one) => create([own, one]), [foreign, deleted, '']);
  const change = (one: string) => ({ path: `${KEYS}/${id}`, body: { applicationIds: [own, one] } });
  await expectLikeNever(owner.session, 'PATCH', change, [foreign, deleted]);
  await expectUnchanged();
});

it('an own id may be written in capitals', async () => {
  for (const api of Object.values(callers))
    expect((await api.get('/api/v1/panel/get-application-settings', { applicationId: own.toUpperCase() })).status).toBe(200);
});
