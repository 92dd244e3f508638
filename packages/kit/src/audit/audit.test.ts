import { randomUUID } from 'node:crypto';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { eventually } from '@latchkey/testkit/eventually';
import { refusalOf } from '@latchkey/testkit/refusal';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLogger } from '../logger.ts';
import { insertAt, startTestAuditLog, type TestAuditLog } from '../testing/audit-table.ts';
import { BY_ITSELF, OPERATOR } from './actor.ts';
import { type AuditEvent, recordAudit, recordAuditUpTo } from './audit-entry.ts';
import { BATCH_MAX, createAuditSweeper, trimAuditLog } from './audit-sweeper.ts';
import type { Changes } from './changes.ts';

let log: TestAuditLog;
beforeAll(async () => {
  log = await startTestAuditLog();
});
afterAll(() => log.stop());

const someEvent = (accountId: string = randomUUID(), changes: Changes = {}): AuditEvent => {
  return { accountId, action: 'thing.done', subject: { kind: 'account', id: accountId }, changes };
};
const DAY_MS = 86_400_000;
const at = (ms: number) => new Date(Date.parse('2026-05-12T09:00:00.000Z') + ms);

describe('an entry', () => {
  it('says who did what to what, and when by the clock of the database', async () => {
    const [accountId, applicationId, credentialId] = [randomUUID(), randomUUID(), randomUUID()];
    const origin = { kind: 'api_key', credentialId, address: '203.0.113.7', requestId: 'request-1' } as const;
    const subject = { kind: 'file', id: randomUUID() } as const;
    const changes = { name: 'a "file"', size: 3, gone: null, on: true, levels: ['a', 'b'], absent: undefined };
    const clock = async () =>
      (await log.pool.query<{ now: Date }>('select clock_timestamp()::timestamptz(3) as now')).rows[0]?.now;
    const before = await clock();
    await recordAudit(log.db, origin, { accountId, action: 'file.uploaded', subject, applicationId, changes });
    const after = await clock();
    const { entries } = await log.client.listAuditEntries({ accountId });
    expect(entries).toMatchObject([
      { action: 'file.uploaded', actorKind: 1, credentialId, address: '203.0.113.7', requestId: 'request-1', applicationId },
    ]);
    expect(entries).toMatchObject([{ subjectKind: 'file', subjectId: subject.id }]);
    expect(JSON.parse(entries[0]?.changesJson ?? '')).toEqual({
      name: 'a "file"',
      size: 3,
      gone: null,
      on: true,
      levels: ['a', 'b'],
    });
    const seconds = Number(entries[0]?.at?.seconds) + (entries[0]?.at?.nanos ?? 0) / 1e9;
    expect(seconds).toBeGreaterThanOrEqual((before?.getTime() ?? 0) / 1000);
    expect(seconds).toBeLessThanOrEqual((after?.getTime() ?? 0) / 1000);
  });

  it('leaves out what is not known', async () => {
    const event = someEvent();
    await recordAudit(log.db, OPERATOR, event);
    const { entries } = await log.client.listAuditEntries({ accountId: event.accountId });
    expect(entries).toMatchObject([{ actorKind: 3 }]);
    const { credentialId, address, requestId, applicationId } = entries[0] ?? {};
    expect([credentialId, address, requestId, applicationId]).toEqual(Array(4).fill(undefined));
  });

  it('is bounded whatever changed, and is no reason for a change to fail', async () => {
    const text = `${'x'.repeat(254)}\0😀`;
    const event = someEvent(randomUUID(), { text, list: Array.from({ length: 1_000 }, (_, i) => `${i}`), lone: '\ud800' });
    await recordAudit(log.db, BY_ITSELF, event);
    const { entries } = await log.client.listAuditEntries({ accountId: event.accountId });
    const changes = JSON.parse(entries[0]?.changesJson ?? '');
    expect(changes).toMatchObject({ text: `${'x'.repeat(254)}\ufffd`, listCount: 1_000, lone: '\ufffd' });
    expect(changes.list).toHaveLength(20);
    const large = someEvent(randomUUID(), Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`n${i}`, 'y'.repeat(256)])));
    await recordAudit(log.db, BY_ITSELF, large);
    const found = await log.client.listAuditEntries({ accountId: large.accountId });
    expect(JSON.parse(found.entries[0]?.changesJson ?? '')).toEqual({ omitted: true });
  });

  it('is one of many that one statement writes', async () => {
    const accountId = randomUUID();
    await recordAudit(log.db, BY_ITSELF, ...Array.from({ length: 500 }, () => someEvent(accountId)));
    const { rows } = await log.pool.query('select count(*)::int as n from audit_entry where account_id = $1', [accountId]);
    expect(rows).toEqual([{ n: 500 }]);
  });

  it('is not there without its change', async () => {
    const event = someEvent();
    const change = log.db.transaction().execute(async (tx) => {
      await recordAudit(tx, BY_ITSELF, event);
      throw new Error('undone by the test');
    });
    await expect(change).rejects.toThrow('undone by the test');
    expect((await log.list({ accountId: event.accountId })).ids).toEqual([]);
  });

  it('of what somebody may try as often as they like is one of so many an hour, however many are written at once', async () => {
    const [accountId, other] = [randomUUID(), randomUUID()];
    const record = (account: string) =>
      log.db.transaction().execute((tx) => recordAuditUpTo(tx, BY_ITSELF, someEvent(account), 5));
    await Promise.all([...Array.from({ length: 20 }, () => record(accountId)), record(other)]);
    expect((await log.list({ accountId })).ids).toHaveLength(5);
    expect((await log.list({ accountId: other })).ids).toHaveLength(1);
    await log.pool.query(`update audit_entry set at = at - interval '59 minutes' where account_id = $1`, [accountId]);
    await record(accountId);
    expect((await log.list({ accountId })).ids).toHaveLength(5);
    await log.pool.query(`update audit_entry set at = at - interval '2 minutes' where account_id = $1`, [accountId]);
    await record(accountId);
    expect((await log.list({ accountId })).ids).toHaveLength(6);
  });

  it('of one reason takes no place from those of another', async () => {
    const accountId = randomUUID();
    const record = (reason: string) =>
      log.db.transaction().execute((tx) => recordAuditUpTo(tx, BY_ITSELF, someEvent(accountId, { reason }), 5));
    await Promise.all(Array.from({ length: 8 }, () => record('guessed')));
    await Promise.all(Array.from({ length: 8 }, () => record('known')));
    const { entries } = await log.client.listAuditEntries({ accountId });
    const reasons = entries.map(({ changesJson }) => JSON.parse(changesJson).reason);
    expect(reasons.toSorted()).toEqual([...Array(5).fill('guessed'), ...Array(5).fill('known')]);
  });
});

describe('a page', () => {
  it('is followed by the next without a gap and without a repetition, also among entries of one millisecond and while others are written', async () => {
    const accountId = randomUUID();
    const times = [0, 0, 0, 1, 1, 2, 5, 5, 5, 5].map(at);
    const written = await Promise.all(times.map(async (time) => ({ id: await insertAt(log, { accountId, at: time }), time })));
    await insertAt(log, { accountId: randomUUID(), at: at(3) });
    const expected = written
      .toSorted((a, b) => b.time.getTime() - a.time.getTime() || (a.id < b.id ? 1 : -1))
      .map(({ id }) => id);
    for (const limit of [1, 2, 3, 4, 10, 11]) {
      const seen: string[] = [];
      for (let before = {}, more = true; more; ) {
        const { entries, hasMore } = await log.client.listAuditEntries({ accountId, limit, ...before });
        await insertAt(log, { accountId, at: at(100) });
        seen.push(...entries.map(({ id }) => id));
        const last = entries.at(-1);
        if (last?.at) before = { before: { at: last.at, id: last.id } };
        more = hasMore;
      }
      const [newer, rest] = [seen.filter((id) => !expected.includes(id)), seen.filter((id) => expected.includes(id))];
      expect(rest).toEqual(expected);
      // Those that were there before the first page was read.
      expect(new Set(newer).size).toBe(newer.length);
    }
  });

  it('has 50 entries unless it is said, and 100 at most', async () => {
    const accountId = randomUUID();
    await recordAudit(log.db, BY_ITSELF, ...Array.from({ length: 101 }, () => someEvent(accountId)));
    expect((await log.list({ accountId })).ids).toHaveLength(50);
    const { ids, hasMore } = await log.list({ accountId, limit: 100 });
    expect([ids.length, hasMore]).toEqual([100, true]);
    await log.pool.query('delete from audit_entry where id = $1', [ids[0]]);
    expect((await log.list({ accountId, limit: 100 })).hasMore).toBe(false);
  });

  it('is of an application or of an action where that is said', async () => {
    const [accountId, applicationId] = [randomUUID(), randomUUID()];
    const plain = await insertAt(log, { accountId, at: at(0) });
    const ofApplication = await insertAt(log, { accountId, at: at(1), applicationId });
    const ofAction = await insertAt(log, { accountId, at: at(2), action: 'thing.undone' });
    await insertAt(log, { accountId: randomUUID(), at: at(1), applicationId });
    const list = async (filter: object) => (await log.list({ accountId, ...filter })).ids;
    expect(await list({})).toEqual([ofAction, ofApplication, plain]);
    expect(await list({ filter: { case: 'applicationId', value: applicationId.toUpperCase() } })).toEqual([ofApplication]);
    expect(await list({ filter: { case: 'action', value: 'thing.undone' } })).toEqual([ofAction]);
    for (const value of ['', 'thing', 'thing.undone\0', '%'])
      expect(await list({ filter: { case: 'action', value } })).toEqual([]);
    for (const value of ['', 'x', randomUUID()]) expect(await list({ filter: { case: 'applicationId', value } })).toEqual([]);
  });

  it('of what is no account is empty', async () => {
    expect(await log.list({ accountId: 'nobody' })).toEqual({ ids: [], hasMore: false });
  });

  it.each([
    ['a negative number of entries', { limit: -1 }],
    ['more than 100 entries', { limit: 101 }],
    ['a place without a time', { before: { id: randomUUID() } }],
    ['a place that no time is of', { before: { at: { seconds: 99_999_999_999_999n, nanos: 0 }, id: randomUUID() } }],
    ['a place of no entry', { before: { at: timestampFromDate(at(0)), id: 'x' } }],
  ])('is refused for %s', async (_what, request) => {
    const refusal = await refusalOf(log.client.listAuditEntries({ accountId: randomUUID(), ...request }));
    expect(refusal).toMatchObject({ reason: 'audit_page_invalid', kind: 'malformed' });
  });
});

describe('trimming', () => {
  const count = async (accountId: string) => (await log.list({ accountId, limit: 100 })).ids.length;
  const now = () => new Date();

  it('removes what is older than the days that it is kept for, however much it is, and nothing else', async () => {
    const accountId = randomUUID();
    const old = new Date(now().getTime() - 90 * DAY_MS - 60_000);
    const young = await insertAt(log, { accountId, at: new Date(now().getTime() - 90 * DAY_MS + 60_000) });
    await log.pool.query(
      `insert into audit_entry (id, account_id, at, action, actor, subject, subject_id, changes)
        select gen_random_uuid(), $1, $2, 'thing.done', 'service', 'account', $1, '{}' from generate_series(1, $3::int)`,
      [accountId, old, BATCH_MAX + 10],
    );
    await trimAuditLog({ pool: log.pool, retentionDays: 90 }, new AbortController().signal);
    expect((await log.list({ accountId })).ids).toEqual([young]);
  });

  it('is done by several processes at once', async () => {
    const accountId = randomUUID();
    const old = new Date(now().getTime() - 2 * DAY_MS);
    await Promise.all(Array.from({ length: 50 }, () => insertAt(log, { accountId, at: old })));
    await Promise.all(
      Array.from({ length: 4 }, () => trimAuditLog({ pool: log.pool, retentionDays: 1 }, new AbortController().signal)),
    );
    expect(await count(accountId)).toBe(0);
  });

  it('ends after the batch under way where it is told to', async () => {
    const accountId = randomUUID();
    const stopped = AbortSignal.abort();
    await insertAt(log, { accountId, at: new Date(now().getTime() - 2 * DAY_MS) });
    await trimAuditLog({ pool: log.pool, retentionDays: 1 }, stopped);
    expect(await count(accountId)).toBe(1);
  });

  it('is begun with the service', async () => {
    const accountId = randomUUID();
    await insertAt(log, { accountId, at: new Date(now().getTime() - 4 * DAY_MS) });
    const sweeper = createAuditSweeper({
      pool: log.pool,
      retentionDays: 3,
      entriesPerDay: 100,
      logger: createLogger('shop', 'silent'),
    });
    sweeper.start();
    await eventually(async () => (await count(accountId)) === 0);
    await sweeper.stop();
  });
});
