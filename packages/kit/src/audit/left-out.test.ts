import { randomUUID } from 'node:crypto';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { eventually } from '@latchkey/testkit/eventually';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLogger } from '../logger.ts';
import { startTestAuditLog, type TestAuditLog } from '../testing/audit-table.ts';
import { createAuditSweeper } from './audit-sweeper.ts';
import { BATCH_MAX, leaveOutEntries } from './left-out.ts';

const PER_DAY = 5;
const HOUR_MS = 3_600_000;

let log: TestAuditLog;
beforeAll(async () => {
  log = await startTestAuditLog();
});
afterAll(() => log.stop());

interface Entries {
  readonly action?: string;
  readonly count: number;
  /** When the first was; each is a millisecond after the one before. */
  readonly at?: Date;
  readonly credentialId?: string;
}

const insert = (accountId: string, { action = 'thing.done', count, at = new Date(), credentialId = randomUUID() }: Entries) =>
  log.pool.query(
    `insert into audit_entry (id, account_id, at, action, actor, credential_id, subject, subject_id, changes)
      select gen_random_uuid(), $1, $2::timestamptz + i * interval '1 ms', $3, 'api_key', $4, 'account', $1, jsonb_build_object('n', i)
      from generate_series(0, $5::int - 1) i`,
    [accountId, at, action, credentialId, count],
  );

const leaveOut = (signal = new AbortController().signal) => leaveOutEntries({ pool: log.pool, entriesPerDay: PER_DAY }, signal);

/** What the log shows of an account, the oldest first. */
async function shown(accountId: string) {
  const { entries } = await log.client.listAuditEntries({ accountId, limit: 100 });
  return entries.toReversed().map(({ action, changesJson, at }) => ({
    action,
    at: at ? timestampDate(at).getTime() : 0,
    changes: JSON.parse(changesJson),
  }));
}

const actionsOf = async (accountId: string) => (await shown(accountId)).map(({ action }) => action);

describe('of an action that an account has too many entries of in a day', () => {
  it('the first stay, and one entry in place of the others says how many there were, until when, and with which credentials', async () => {
    const accountId = randomUUID();
    const [at, credentialId] = [new Date(), randomUUID()];
    await insert(accountId, { count: PER_DAY + 3, at, credentialId });
    await leaveOut();
    const entries = await shown(accountId);
    expect(entries.map(({ action }) => action)).toEqual([...Array(PER_DAY).fill('thing.done'), 'audit_log.entries_left_out']);
    expect(entries.slice(0, PER_DAY).map(({ changes }) => changes.n)).toEqual([0, 1, 2, 3, 4]);
    const until = new Date(at.getTime() + PER_DAY + 2).toISOString();
    expect(entries.at(-1)).toEqual({
      action: 'audit_log.entries_left_out',
      at: at.getTime() + PER_DAY,
      changes: { action: 'thing.done', count: 3, until, credentialIds: [credentialId] },
    });
  });

  it('further ones are added to what that entry says', async () => {
    const accountId = randomUUID();
    const at = new Date();
    const credentialIds = Array.from({ length: 25 }, () => randomUUID());
    await insert(accountId, { count: PER_DAY + 1, at, ...(credentialIds[0] && { credentialId: credentialIds[0] }) });
    await leaveOut();
    const before = (await shown(accountId)).at(-1);
    for (const credentialId of credentialIds)
      await insert(accountId, { count: 2, at: new Date(at.getTime() + 50), credentialId });
    for (let i = 0; i < 2; i += 1) await leaveOut();
    const entries = await shown(accountId);
    expect(entries).toHaveLength(PER_DAY + 1);
    const until = new Date(at.getTime() + 51).toISOString();
    expect(entries.at(-1)).toMatchObject({ at: before?.at, changes: { action: 'thing.done', count: 51, until } });
    const named: string[] = entries.at(-1)?.changes.credentialIds;
    expect(new Set(named).size).toBe(20);
    expect(credentialIds).toEqual(expect.arrayContaining(named));
  });

  it('those of other actions, of other accounts and of other days all stay', async () => {
    const [accountId, other] = [randomUUID(), randomUUID()];
    await insert(accountId, { count: PER_DAY });
    await insert(accountId, { count: PER_DAY, at: new Date(Date.now() - 25 * HOUR_MS) });
    await insert(accountId, { count: PER_DAY, action: 'thing.undone' });
    await insert(other, { count: PER_DAY });
    await leaveOut();
    expect(await actionsOf(accountId)).toHaveLength(PER_DAY * 3);
    expect(await actionsOf(other)).toHaveLength(PER_DAY);
  });

  it('each is counted once, however many there are and however many processes leave them out', async () => {
    const accountId = randomUUID();
    const count = BATCH_MAX * 2 + 10;
    await insert(accountId, { count: PER_DAY + count });
    await Promise.all(Array.from({ length: 4 }, () => leaveOut()));
    const entries = await shown(accountId);
    expect(entries).toHaveLength(PER_DAY + 1);
    expect(entries.at(-1)?.changes.count).toBe(count);
  });

  it('none is left out any more by a process that is stopping', async () => {
    const accountId = randomUUID();
    await insert(accountId, { count: PER_DAY + 1 });
    await leaveOut(AbortSignal.abort());
    expect(await actionsOf(accountId)).toEqual(Array(PER_DAY + 1).fill('thing.done'));
  });

  it('is looked for from when the service begins', async () => {
    const accountId = randomUUID();
    await insert(accountId, { count: PER_DAY + 1 });
    const logger = createLogger('shop', 'silent');
    const sweeper = createAuditSweeper({ pool: log.pool, retentionDays: 3, entriesPerDay: PER_DAY, logger });
    sweeper.start();
    await eventually(async () => expect((await actionsOf(accountId)).at(-1)).toBe('audit_log.entries_left_out'));
    await sweeper.stop();
  });
});
