import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { createDatabase, isDatabaseUnavailable } from '@latchkey/kit/database/database';
import { createLogger } from '@latchkey/kit/log/logger';
import { eventually } from '@latchkey/testkit/eventually';
import { startTcpProxy } from '@latchkey/testkit/network/tcp-proxy';
import { sql } from 'kysely';
import { Client } from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { SERVICE_ORIGIN } from './actor.ts';
import { publishChanges } from './announce.ts';
import { recordAudit } from './record.ts';
import { openTestAuditLog } from './testing/audit-table.ts';
import { afterCommit, runTransaction } from './transaction.ts';

const log = await openTestAuditLog();
// Effect of a row while its transaction commits.
await log.pool.query(`
    create table shop.thing (at_commit text);
    create function shop.commit_thing() returns trigger language plpgsql as $$ begin execute new.at_commit; return null; end $$;
    create constraint trigger commit_thing after insert on shop.thing deferrable initially deferred
      for each row execute function shop.commit_thing()`);

async function open() {
  const proxy = await startTcpProxy(log.url);
  const { db, close } = createDatabase<unknown>({ url: proxy.url, schema: 'shop', logger: createLogger('test', 'silent') });
  onTestFinished(async () => {
    await close();
    await proxy.close();
  });
  const steps: string[] = [];
  publishChanges(db, (_accountId, { kind }) => steps.push(kind));
  const accountId = randomUUID();
  const count = async () => (await log.pool.query('select from shop.audit_entry where account_id = $1', [accountId])).rowCount;
  const change = (atCommit = 'select 1', outcomeMsMax?: number) =>
    runTransaction(
      db,
      async (tx) => {
        await sql`insert into shop.thing values (${atCommit})`.execute(tx);
        const subject = { kind: 'account', id: accountId } as const;
        await recordAudit(tx, SERVICE_ORIGIN, { accountId, action: 'account.created', subject });
        afterCommit(tx, async () => {
          await setImmediate();
          steps.push('hook');
        });
        return 'done';
      },
      outcomeMsMax,
    );
  /** Begins a change, and cuts its connection while it commits. `end` ends the commit. */
  const cutCommit = async (outcomeMsMax?: number) => {
    const holder = new Client(log.url);
    await holder.connect();
    // A test that fails earlier must not leave the lock to the next one.
    const end = () => holder.end();
    onTestFinished(end);
    await holder.query('select pg_advisory_lock(42)');
    const changed = change('select pg_advisory_xact_lock(42)', outcomeMsMax).catch((err: unknown) => err);
    const waiting = `select from pg_stat_activity where datname = current_database() and wait_event = 'advisory'`;
    await eventually(async () => (await log.pool.query(waiting)).rowCount === 1);
    await proxy.cut();
    return { changed, end };
  };
  return { proxy, count, change, cutCommit, steps };
}

it('succeeds where only the acknowledgement of its commit was lost', async () => {
  const { proxy, change, count } = await open();
  proxy.loseAnswerTo('commit');
  expect([await change(), await count()]).toEqual(['done', 1]);
});

it('announces a change once what follows its commit is done', async () => {
  const { change, steps } = await open();
  await change();
  expect(steps).toEqual(['hook', 'account']);
});

it('waits for a commit that is still under way on a lost connection', async () => {
  const { proxy, count, cutCommit } = await open();
  const { changed, end } = await cutCommit();
  await proxy.restore();
  const asking = `select from pg_stat_activity where datname = current_database() and query like '%pg_xact_status%' and pid <> pg_backend_pid()`;
  await eventually(async () => ((await log.pool.query(asking)).rowCount ?? 0) > 0);
  await end();
  expect([await changed, await count()]).toEqual(['done', 1]);
});

it('fails as unavailable where the database undid it at the commit', async () => {
  const { change, count } = await open();
  const err = await change('select pg_terminate_backend(pg_backend_pid())').catch((thrown: unknown) => thrown);
  expect([isDatabaseUnavailable(err), await count()]).toEqual([true, 0]);
});

it('has an unknown outcome where the database does not return in time', async () => {
  const { cutCommit } = await open();
  const { changed, end } = await cutCommit(200);
  expect(await changed).toMatchObject({ reason: 'outcome_unknown', httpStatus: 503, code: 'outcome_unknown' });
  await end();
});
