import { createEmptyTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { sql } from 'kysely';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { memoryLogger } from '../testing/memory-logger.ts';
import { startProxy } from '../testing/tcp-proxy.ts';
import { checkDatabase, createDatabase, isDatabaseUnavailable, isUniqueViolation } from './database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createEmptyTestDatabase();
});
afterAll(() => database.drop());

function open(url: string, poolMax = 4) {
  const opened = createDatabase<unknown>({ url, schema: 'public', logger: memoryLogger().logger, poolMax });
  onTestFinished(() => opened.close());
  return opened;
}

const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.fail('it succeeded'),
    (err: unknown) => err,
  );

const select = (db: ReturnType<typeof open>['db'], n = 1) =>
  sql<{ n: number }>`select ${n}::int as n`.execute(db).then(({ rows }) => rows[0]?.n);

describe('a database that stops answering', () => {
  it('fails queries within 5 s as unavailable, and works again once it answers', async () => {
    const proxy = await startProxy(database.url);
    const { db, pool } = open(proxy.url);
    await Promise.all([select(db), select(db)]);
    proxy.freeze();
    const startedAt = performance.now();
    const errors = await Promise.all([
      // More than the pool has connections: some wait for one, some for a new one, some for an answer.
      ...Array.from({ length: 8 }, () => failure(select(db))),
      failure(pool.query('select 1')),
      failure(db.transaction().execute((tx) => select(tx as typeof db))),
      failure(checkDatabase(pool)),
    ]);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    expect(errors.slice(0, -1).map(isDatabaseUnavailable)).toEqual(Array.from({ length: 10 }, () => true));
    expect(errors.at(-1)).toMatchObject({ reason: 'dependency_unavailable' });
    proxy.thaw();
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => select(db, n)));
    expect(answers).toEqual(Array.from({ length: 20 }, (_, n) => n));
  });

  it('fails a transaction in the middle within 5 s, and no later query gets its answer', async () => {
    const proxy = await startProxy(database.url);
    const { db } = open(proxy.url, 1);
    const err = await failure(
      db.transaction().execute(async (tx) => {
        await select(tx as typeof db);
        proxy.freeze();
        return select(tx as typeof db, 7);
      }),
    );
    expect(isDatabaseUnavailable(err)).toBe(true);
    proxy.thaw();
    expect(await select(db, 8)).toBe(8);
  });
});

describe('a connection that is lost', () => {
  it('is replaced where nothing comes back on it any more', async () => {
    const proxy = await startProxy(database.url);
    const { db } = open(proxy.url, 1);
    await select(db);
    proxy.abandon();
    expect(isDatabaseUnavailable(await failure(select(db)))).toBe(true);
    expect(await select(db, 2)).toBe(2);
  });

  it('ends neither the process nor the pool, whether idle or in a transaction', async () => {
    const proxy = await startProxy(database.url);
    const { db } = open(proxy.url);
    await Promise.all([select(db), select(db)]);
    const err = await failure(
      db.transaction().execute(async (tx) => {
        await select(tx as typeof db);
        const before = proxy.accepted();
        proxy.reset();
        // A query on a new connection shows that the old one's end was noticed.
        await eventually(async () => expect(await select(db)).toBe(1));
        expect(proxy.accepted()).toBeGreaterThan(before);
        return select(tx as typeof db);
      }),
    );
    expect(isDatabaseUnavailable(err)).toBe(true);
    expect(await select(db)).toBe(1);
  });
});

describe('a database that works', () => {
  it('ends a statement that takes too long by itself, and keeps the connection', async () => {
    const { db, pool } = open(database.url, 1);
    const pid = async () => (await pool.query('select pg_backend_pid() as pid')).rows[0].pid as number;
    const before = await pid();
    const err = await failure(sql`select pg_sleep(10)`.execute(db));
    expect(err).toMatchObject({ code: '57014' });
    expect(isDatabaseUnavailable(err)).toBe(true);
    expect(await pid()).toBe(before);
  });

  it('reaches the tables of its schema, and is ready', async () => {
    const { pool } = open(database.url);
    await checkDatabase(pool);
    expect((await pool.query('show search_path')).rows).toEqual([{ search_path: 'public' }]);
  });

  it('closes its pool also where only the pool was used, and more than once', async () => {
    const { pool, close } = open(database.url);
    await pool.query('select 1');
    await close();
    await close();
    expect(pool.ended).toBe(true);
  });
});

describe('isDatabaseUnavailable', () => {
  it.each([
    ['a refused connection', () => open('postgres://u:p@127.0.0.1:1/x')],
    ['a name that does not resolve', () => open('postgres://u:p@nowhere.invalid/x')],
  ])('holds for %s', async (_name, opened) => {
    expect(isDatabaseUnavailable(await failure(opened().pool.query('select 1')))).toBe(true);
  });

  it('holds for a session that the server ended', async () => {
    const { pool } = open(database.url);
    const client = await pool.connect();
    const { rows } = await client.query('select pg_backend_pid() as pid');
    const waiting = failure(client.query('select pg_sleep(2)'));
    await pool.query('select pg_terminate_backend($1, 5000)', [rows[0].pid]);
    expect(isDatabaseUnavailable(await waiting)).toBe(true);
    client.release(true);
  });

  it('holds for a deadlock', async () => {
    const { pool } = open(database.url);
    const [a, b] = [await pool.connect(), await pool.connect()];
    await Promise.all([a.query('begin'), b.query('begin')]);
    await Promise.all([a.query('select pg_advisory_xact_lock(1)'), b.query('select pg_advisory_xact_lock(2)')]);
    const both = await Promise.allSettled([
      a.query('select pg_advisory_xact_lock(2)'),
      b.query('select pg_advisory_xact_lock(1)'),
    ]);
    const errors = both.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []));
    expect(errors.map(isDatabaseUnavailable)).toEqual([true]);
    a.release(true);
    b.release(true);
  });

  it.each(['selec', 'select * from nowhere', "select 'x'::int", 'select 1/0'])(
    'does not hold for the wrong statement %j',
    async (text) => {
      const { pool } = open(database.url);
      expect(isDatabaseUnavailable(await failure(pool.query(text)))).toBe(false);
    },
  );

  it.each([new Error('x'), new TypeError('y'), 'z', undefined])('does not hold for %s', (err) => {
    expect(isDatabaseUnavailable(err)).toBe(false);
  });
});

it('knows which constraint was violated', async () => {
  const { pool } = open(database.url);
  const client = await pool.connect();
  await client.query('create temporary table t (id int constraint t_once unique)');
  await client.query('insert into t values (1)');
  const err = await failure(client.query('insert into t values (1)'));
  client.release(true);
  expect(err).toBeInstanceOf(pg.DatabaseError);
  expect([
    isUniqueViolation(err, 't_once'),
    isUniqueViolation(err, 'other'),
    isUniqueViolation(new Error('x'), 't_once'),
  ]).toEqual([true, false, false]);
});
