import { eventually } from '@latchkey/testkit/eventually';
import { openEmptyDatabase } from '@latchkey/testkit/postgres/database';
import { sql } from 'kysely';
import { expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../testing/databases.ts';
import { memoryLogger } from '../testing/memory-logger.ts';
import { createProcessLock, hasEnded } from './process-lock.ts';

const WAIT = { timeoutMs: 15_000 };

it('a process counts as ended once its connection has, until it has another', async () => {
  const { url } = await openEmptyDatabase();
  const { db } = openDatabase(url);
  const lock = createProcessLock(url, memoryLogger().logger);
  onTestFinished(() => lock.stop());
  const isOver = async (id: string | null) =>
    (await sql<{ ended: boolean }>`select ${hasEnded(sql`${id}::bigint`)} as ended`.execute(db)).rows[0]?.ended;
  const isHeld = () => eventually(() => lock.id ?? Promise.reject(new Error('not held')), WAIT);
  expect([lock.id, await isOver(lock.id)]).toEqual([null, false]);
  lock.start();
  const id = await isHeld();
  expect(await isOver(id)).toBe(false);
  const { rows } = await sql`
    select pg_terminate_backend(pid, 10000) from pg_stat_activity
    where datname = current_database() and application_name = 'latchkey-process-lock'`.execute(db);
  expect(rows).toHaveLength(1);
  await eventually(() => lock.id === null, { ...WAIT, intervalMs: 1 });
  expect(await isHeld()).toBe(id);
  expect(await isOver(id)).toBe(false);
  await lock.stop();
  await eventually(() => isOver(id), WAIT);
});
