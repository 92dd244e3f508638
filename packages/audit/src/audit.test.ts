import { randomUUID } from 'node:crypto';
import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { refusalOf } from '@latchkey/testkit/refusal';
import { describe, expect, it } from 'vitest';
import { OPERATOR, SERVICE_ORIGIN } from './actor.ts';
import { type AuditEvent, type Changes, recordAudit, recordAuditUpTo } from './record.ts';
import { insertEntriesAt, openTestAuditLog } from './testing/audit-table.ts';

const log = await openTestAuditLog();

const someEvent = (accountId: string = randomUUID(), changes: Changes = {}): AuditEvent => {
  return { accountId, action: 'account.created', subject: { kind: 'account', id: accountId }, changes };
};
const at = (ms: number) => new Date(Date.parse('2026-05-12T09:00:00.000Z') + ms);

describe('an entry', () => {
  it('says who did what to what, and when by the clock of the database', async () => {
    const [accountId, applicationId, credentialId] = [randomUUID(), randomUUID(), randomUUID()];
    const origin = { kind: 'api_key', credentialId, address: '203.0.113.7', requestId: 'request-1' } as const;
    const subject = { kind: 'file', id: randomUUID() } as const;
    const changes = { name: 'a "file"', size: 3, gone: null, on: true, levels: ['a', 'b'], absent: undefined };
    const { rows } = await log.pool.query<{ now: Date }>('select clock_timestamp()::timestamptz(3) as now');
    await recordAudit(log.db, origin, { accountId, action: 'file.uploaded', subject, applicationId, changes });
    const { entries } = await log.client.listAuditEntries({ accountId });
    const facts = { action: 'file.uploaded', actorKind: 1, credentialId, address: '203.0.113.7', requestId: 'request-1' };
    expect(entries).toMatchObject([{ ...facts, applicationId, subjectKind: 'file', subjectId: subject.id }]);
    expect(JSON.parse(entries[0]?.changesJson ?? '')).toEqual({ ...changes, absent: undefined });
    const [earliest = 0, written = 0] = [rows[0]?.now.getTime(), entries[0]?.at && timestampDate(entries[0].at).getTime()];
    expect([written >= earliest, written < earliest + 5_000]).toEqual([true, true]);
  });

  it('omits what is unknown', async () => {
    const event = someEvent();
    await recordAudit(log.db, OPERATOR, event);
    const { entries } = await log.client.listAuditEntries({ accountId: event.accountId });
    expect(entries).toMatchObject([{ actorKind: 3 }]);
    const { credentialId, address, requestId, applicationId } = entries[0] ?? {};
    expect([credentialId, address, requestId, applicationId]).toEqual(Array(4).fill(undefined));
  });

  it('is bounded, and never makes its change fail', async () => {
    const accountId = randomUUID();
    const text = `${'x'.repeat(254)}\0😀`;
    const list = Array.from({ length: 1_000 }, (_, i) => `${i}`);
    const large = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`n${i}`, 'y'.repeat(256)]));
    await recordAudit(log.db, SERVICE_ORIGIN, someEvent(accountId, { text, list, lone: '\ud800' }));
    await recordAudit(log.db, SERVICE_ORIGIN, someEvent(accountId, large));
    const { entries } = await log.client.listAuditEntries({ accountId });
    expect(entries.map(({ changesJson }) => JSON.parse(changesJson))).toEqual([
      { omitted: true },
      { text: `${'x'.repeat(254)}\ufffd`, list: list.slice(0, 20), listCount: 1_000, lone: '\ufffd' },
    ]);
  });

  it('does not exist without its change', async () => {
    const event = someEvent();
    const change = log.db.transaction().execute(async (tx) => {
      await recordAudit(tx, SERVICE_ORIGIN, event);
      throw new Error('rolled back by the test');
    });
    await expect(change).rejects.toThrow('rolled back by the test');
    expect(await log.list({ accountId: event.accountId })).toEqual([]);
  });

  it('of an attempt is limited to a number an hour for each reason, however many are written concurrently', async () => {
    const accountId = randomUUID();
    const record = (reason: string) =>
      log.db.transaction().execute((tx) => recordAuditUpTo(tx, SERVICE_ORIGIN, someEvent(accountId, { reason }), 5));
    const age = (interval: string) =>
      log.pool.query(`update audit_entry set at = at - $2::interval where account_id = $1`, [accountId, interval]);
    const count = async () => (await log.list({ accountId })).length;
    await Promise.all(Array.from({ length: 20 }, () => record('guessed')));
    expect(await count()).toBe(5);
    await record('known');
    expect(await count()).toBe(6);
    await age('59 minutes');
    await record('guessed');
    expect(await count()).toBe(6);
    await age('2 minutes');
    await record('guessed');
    expect(await count()).toBe(7);
  });
});

describe('a page', () => {
  it.each([1, 3])('of %i is followed by the next without gaps or repetitions, while entries are written', async (limit) => {
    const accountId = randomUUID();
    const insertAt = async (ms: number, account = accountId) =>
      (await insertEntriesAt(log, { accountId: account, at: at(ms) }))[0] as string;
    const written = await Promise.all([0, 0, 0, 1, 1, 2, 5, 5, 5, 5].map(async (ms) => ({ id: await insertAt(ms), ms })));
    await insertAt(3, randomUUID());
    const seen: string[] = [];
    for (let before = {}, more = true; more; ) {
      const { entries, hasMore } = await log.client.listAuditEntries({ accountId, limit, ...before });
      await insertAt(100);
      seen.push(...entries.map(({ id }) => id));
      const last = entries.at(-1);
      if (last?.at) before = { before: { at: last.at, id: last.id } };
      more = hasMore;
    }
    expect(seen).toEqual(written.toSorted((a, b) => b.ms - a.ms || (a.id < b.id ? 1 : -1)).map(({ id }) => id));
  });

  it('has 50 entries by default, and 100 at most', async () => {
    const accountId = randomUUID();
    const ids = await insertEntriesAt(log, { accountId, count: 101 });
    expect(await log.list({ accountId })).toHaveLength(50);
    expect((await log.client.listAuditEntries({ accountId, limit: 100 })).hasMore).toBe(true);
    await log.pool.query('delete from audit_entry where id = $1', [ids[0]]);
    expect((await log.client.listAuditEntries({ accountId, limit: 100 })).hasMore).toBe(false);
  });

  it('can be of an application or of an action, and is empty for invalid ones', async () => {
    const [accountId, applicationId] = [randomUUID(), randomUUID()];
    const plain = await insertEntriesAt(log, { accountId, at: at(0) });
    const ofApplication = await insertEntriesAt(log, { accountId, at: at(1), applicationId });
    const ofAction = await insertEntriesAt(log, { accountId, at: at(2), action: 'account.deleted' });
    await insertEntriesAt(log, { accountId: randomUUID(), at: at(1), applicationId });
    expect(await log.list({ accountId })).toEqual([ofAction, ofApplication, plain].flat());
    const byApplication = (value: string) => log.list({ accountId, filter: { case: 'applicationId', value } });
    const byAction = (value: string) => log.list({ accountId, filter: { case: 'action', value } });
    expect(await byApplication(applicationId.toUpperCase())).toEqual(ofApplication);
    expect(await byAction('account.deleted')).toEqual(ofAction);
    for (const value of ['', 'account', 'account.deleted\0']) expect(await byAction(value)).toEqual([]);
    for (const value of ['', 'x', randomUUID()]) expect(await byApplication(value)).toEqual([]);
    expect(await log.list({ accountId: 'invalid' })).toEqual([]);
  });

  it.each([
    ['a negative limit', { limit: -1 }],
    ['a limit above 100', { limit: 101 }],
    ['a start without a time', { before: { id: randomUUID() } }],
    ['a start out of range', { before: { at: { seconds: 99_999_999_999_999n, nanos: 0 }, id: randomUUID() } }],
    ['a start without an id', { before: { at: timestampFromDate(at(0)), id: 'x' } }],
  ])('is rejected for %s', async (_what, request) => {
    const refusal = await refusalOf(log.client.listAuditEntries({ accountId: randomUUID(), ...request }));
    expect(refusal).toMatchObject({ reason: 'audit_page_invalid', kind: 'malformed' });
  });
});
