import { eventually } from '@latchkey/testkit/eventually';
import { openEmptyDatabase } from '@latchkey/testkit/postgres/database';
import { sql } from 'kysely';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { openDatabase, openTcpProxy } from '../testing/databases.ts';
import { checkDatabase, isDatabaseUnavailable, isUniqueViolation } from './database.ts';

const database = await openEmptyDatabase(afterAll);

const open = (url = database.url, poolMax = 4) => openDatabase(url, { poolMax });

async function openProxied(poolMax?: number) {
  const proxy = await openTcpProxy(database.url);
  return { proxy, ...open(proxy.url, poolMax) };
}

const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.fail('it succeeded'),
    (err: unknown) => err,
  );

const select = (db: ReturnType<typeof open>['db'], n = 1) =>
  sql<{ n: number }>`select ${n}::int as n`.execute(db).then(({ rows }) => rows[0]?.n);

it('a frozen database fails queries within 5 s as unavailable, and no later query gets their responses', async () => {
  const { proxy, db, pool } = await openProxied();
  await Promise.all([select(db), select(db)]);
  proxy.freeze();
  const startedAt = performance.now();
  const errors = await Promise.all([
    // More than the pool has connections: some wait for one, some for a response.
    ...Array.from({ length: 8 }, () => failure(select(db))),
    failure(pool.query('select 1')),
    failure(checkDatabase(pool)),
  ]);
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  expect(errors.slice(0, -1).every(isDatabaseUnavailable)).toBe(true);
  expect(errors.at(-1)).toMatchObject({ reason: 'dependency_unavailable' });
  await proxy.restore();
  const numbers = Array.from({ length: 20 }, (_, n) => n);
  expect(await Promise.all(numbers.map((n) => select(db, n)))).toEqual(numbers);
});

it('a connection without responses is replaced', async () => {
  const { proxy, db } = await openProxied(1);
  await select(db);
  proxy.abandon();
  expect(isDatabaseUnavailable(await failure(select(db)))).toBe(true);
  expect(await select(db, 2)).toBe(2);
});

it('a lost connection ends neither the process nor the pool, whether it is idle or in a transaction', async () => {
  const { proxy, db } = await openProxied();
  await Promise.all([select(db), select(db)]);
  const err = await failure(
    db.transaction().execute(async (tx) => {
      await select(tx as typeof db);
      await proxy.cut();
      await proxy.restore();
      await eventually(async () => expect(await select(db)).toBe(1));
      return select(tx as typeof db);
    }),
  );
  expect(isDatabaseUnavailable(err)).toBe(true);
  expect(await select(db)).toBe(1);
});

it('finds the server that accepts writes among those of its URL, and another one after a switch', async () => {
  const proxies = [await openTcpProxy(database.url), await openTcpProxy(database.url)] as const;
  const [first, second] = proxies;
  await first.cut();
  const { db } = open(database.url.replace(/@[^/]*/, `@127.0.0.1:1,${proxies.map(({ url }) => new URL(url).host)}`));
  expect(await select(db)).toBe(1);
  await Promise.all([first.restore(), second.cut()]);
  await eventually(async () => expect(await select(db, 2)).toBe(2));
});

it('a connection that is refused leaves the others open', async () => {
  const { pool } = open(undefined, 2);
  const client = await pool.connect();
  onTestFinished(() => client.release());
  const limit = (count: number) => client.query(`alter database ${database.name} connection limit ${count}`);
  await limit(0);
  expect(isDatabaseUnavailable(await failure(pool.query('select 1')))).toBe(true);
  await limit(-1);
  expect((await pool.query('select 1 as n')).rows).toEqual([{ n: 1 }]);
});

it('replaces every connection to a server that turned read-only', async () => {
  const { db, pool } = open(undefined, 2);
  const clients = [await pool.connect(), await pool.connect()];
  const pids = await Promise.all(
    clients.map(async (client) => (await client.query('select pg_backend_pid() as pid')).rows[0].pid),
  );
  await clients[1]?.query('set default_transaction_read_only = on');
  for (const client of clients) client.release();
  const write = () => sql`create table if not exists written (n int)`.execute(db);
  expect(isDatabaseUnavailable(await failure(write()))).toBe(true);
  await eventually(write);
  const { rows } = await pool.query('select pg_backend_pid() as pid');
  expect(pids).not.toContain(rows[0].pid);
});

it('PostgreSQL itself ends a slow statement, and the connection stays', async () => {
  const { db, pool } = open(undefined, 1);
  const pid = async () => (await pool.query('select pg_backend_pid() as pid')).rows[0].pid as number;
  const before = await pid();
  const err = await failure(sql`select pg_sleep(10)`.execute(db));
  expect(err).toMatchObject({ code: '57014' });
  expect(isDatabaseUnavailable(err)).toBe(true);
  expect(await pid()).toBe(before);
});

it('reads arrays of UUIDs', async () => {
  const ids = ['01a2190a-887b-7005-9e80-412da1b9b1b4', '01a2190a-8b0f-7330-b8a4-f4d8f4d24614'];
  for (const read of [[], ids.slice(1), ids]) {
    const { rows } = await open().pool.query('select $1::uuid[] as ids, null::uuid[] as missing', [read]);
    expect(rows).toEqual([{ ids: read, missing: null }]);
  }
});

it('closes its pool also when only the pool was used, and more than once', async () => {
  const { pool, close } = open();
  expect((await pool.query('show search_path')).rows).toEqual([{ search_path: 'public' }]);
  await close();
  await close();
  expect(pool.ended).toBe(true);
});

describe('the errors of a database', () => {
  const query = (text: string) => failure(open().pool.query(text));
  const deadlock = async () => {
    const { pool } = open();
    const [a, b] = [await pool.connect(), await pool.connect()];
    const lock = (client: typeof a, id: number) => client.query(`begin; select pg_advisory_xact_lock(${id})`);
    await Promise.all([lock(a, 1), lock(b, 2)]);
    const both = await Promise.allSettled([lock(a, 2), lock(b, 1)]);
    for (const client of [a, b]) client.release(true);
    return both.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []))[0];
  };

  it.each<[string, boolean, () => unknown]>([
    ['a refused connection', true, () => failure(open('postgres://u:p@127.0.0.1:1/x').pool.query('select 1'))],
    ['an unknown host', true, () => failure(open('postgres://u:p@nowhere.invalid/x').pool.query('select 1'))],
    ['a terminated session', true, () => query('select pg_terminate_backend(pg_backend_pid())')],
    ['a deadlock', true, deadlock],
    ['a syntax error', false, () => query('selec')],
    ['another error', false, () => new Error('x')],
    ['no error', false, () => undefined],
  ])('%s means unavailable: %s', async (_name, expected, create) => {
    expect(isDatabaseUnavailable(await create())).toBe(expected);
  });

  it('name the unique constraint that was violated', async () => {
    const text = `create temporary table t (id int constraint t_once unique) on commit drop; insert into t values (1), (1)`;
    const err = await query(text);
    expect(isUniqueViolation(err, 't_once')).toBe(true);
    expect([isUniqueViolation(err, 'other'), isUniqueViolation(new Error('x'), 't_once')]).toEqual([false, false]);
  });
});
