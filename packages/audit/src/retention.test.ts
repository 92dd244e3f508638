import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { createLogger } from '@latchkey/kit/log/logger';
import { eventually } from '@latchkey/testkit/eventually';
import type pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { BATCH_MAX, createAuditSweeper } from './retention.ts';
import { insertEntriesAt, openTestAuditLog } from './testing/audit-table.ts';

const PER_DAY = 5;
const DAY_MS = 86_400_000;

const log = await openTestAuditLog();

const insert = (accountId: string, entries: Omit<Parameters<typeof insertEntriesAt>[1], 'accountId'> = {}) =>
  insertEntriesAt(log, { accountId, ...entries });

/** The entries of an account, the oldest first. */
async function shown(accountId: string) {
  const { entries } = await log.client.listAuditEntries({ accountId, limit: 100 });
  return entries.toReversed().map(({ action, changesJson, at }) => ({
    action,
    at: at ? timestampDate(at).getTime() : 0,
    changes: JSON.parse(changesJson),
  }));
}

/** Sweepers of several processes, until the test ends. */
function sweep(processes = 1) {
  const options = {
    db: log.db,
    pool: log.pool,
    retentionDays: 90,
    entriesPerDay: PER_DAY,
    logger: createLogger('shop', 'silent'),
  };
  for (let i = 0; i < processes; i += 1) {
    const sweeper = createAuditSweeper(options);
    onTestFinished(() => sweeper.stop());
    sweeper.start();
  }
}

it('entries are deleted after their retention, by several processes concurrently, and others stay', async () => {
  const accountId = randomUUID();
  await insert(accountId, { count: BATCH_MAX + 10, at: new Date(Date.now() - 90 * DAY_MS - 60_000) });
  const young = await insert(accountId, { at: new Date(Date.now() - 90 * DAY_MS + 60_000) });
  sweep(4);
  await eventually(async () => expect(await log.list({ accountId })).toEqual(young));
});

describe('entries of one action, account and day beyond the limit', () => {
  it('are replaced by one that says how many there were, until when and with which credentials', async () => {
    const accountId = randomUUID();
    const [at, credentialId] = [new Date(), randomUUID()];
    await insert(accountId, { count: PER_DAY + 3, at, credentialId });
    sweep();
    await eventually(async () => expect(await shown(accountId)).toHaveLength(PER_DAY + 1));
    const entries = await shown(accountId);
    expect(entries.slice(0, PER_DAY).map(({ action, changes }) => [action, changes.n])).toEqual(
      [1, 2, 3, 4, 5].map((n) => ['account.created', n]),
    );
    const until = new Date(at.getTime() + PER_DAY + 2).toISOString();
    const changes = { action: 'account.created', count: 3, until, credentialIds: [credentialId] };
    expect(entries.at(-1)).toEqual({ action: 'audit_log.entries_left_out', at: at.getTime() + PER_DAY, changes });
    const credentialIds = Array.from({ length: 25 }, () => randomUUID());
    await Promise.all(credentialIds.map((id) => insert(accountId, { at: new Date(at.getTime() + 50), credentialId: id })));
    sweep(4);
    await eventually(async () => expect((await shown(accountId)).at(-1)?.changes.count).toBe(28));
    const last = (await shown(accountId)).at(-1);
    expect(last?.changes.until).toBe(new Date(at.getTime() + 50).toISOString());
    expect(new Set(last?.changes.credentialIds).size).toBe(20);
  });

  it('are found in any minute of the last hour', async () => {
    const accountId = randomUUID();
    await insert(accountId, { count: PER_DAY + 1, at: new Date(Date.now() - 59 * 60_000) });
    sweep();
    await eventually(async () => expect((await shown(accountId)).at(-1)?.action).toBe('audit_log.entries_left_out'));
  });

  it('are counted once, however many there are and however many processes count them', async () => {
    const accountId = randomUUID();
    await insert(accountId, { count: PER_DAY + BATCH_MAX * 2 + 10 });
    sweep(4);
    await eventually(async () => expect(await shown(accountId)).toHaveLength(PER_DAY + 1));
    expect((await shown(accountId)).at(-1)?.changes.count).toBe(BATCH_MAX * 2 + 10);
  });

  it('do not count those of other actions, accounts and days', async () => {
    const [accountId, other, full] = [randomUUID(), randomUUID(), randomUUID()];
    await insert(accountId, { count: PER_DAY });
    await insert(accountId, { count: PER_DAY, at: new Date(Date.now() - 25 * 3_600_000) });
    await insert(accountId, { count: PER_DAY, action: 'account.deleted' });
    await insert(other, { count: PER_DAY });
    await insert(full, { count: PER_DAY + 1 });
    sweep();
    await eventually(async () => expect((await shown(full)).at(-1)?.action).toBe('audit_log.entries_left_out'));
    expect([await shown(accountId), await shown(other)].map(({ length }) => length)).toEqual([PER_DAY * 3, PER_DAY]);
  });
});

it('ends between two batches when it stops', async () => {
  let batches = 0;
  const query = async () => {
    batches += 1;
    await nextTurn();
    return { rowCount: BATCH_MAX };
  };
  const logger = createLogger('shop', 'silent');
  const sweeper = createAuditSweeper({ db: log.db, pool: { query } as unknown as pg.Pool, retentionDays: 90, logger });
  sweeper.start();
  await eventually(() => batches > 2);
  await sweeper.stop();
});
