import type pg from 'pg';
import { integerSetting } from '../config.ts';
import { type Crowd, leaveOutOf, selectCrowds } from './left-out.store.ts';

/** How many entries of one action are kept for an account and a day. */
export const auditEntriesPerDaySetting = integerSetting(100, 1_000_000).default(2_000);

/** What entries are left out by. */
export interface LeavingOut {
  readonly pool: pg.Pool;
  readonly entriesPerDay: number;
}

/** Most entries left out by one statement. */
export const BATCH_MAX = 1_000;

/**
 * Keeps an account from filling the table: of each action the first entries of a day (of UTC) stay, and one entry in the place of all others says how many they
 * were. It is done behind the scenes, so that nothing has to be counted for a change, and no change fails for it; any number of processes may do so at once.
 */
export async function leaveOutEntries({ pool, entriesPerDay }: LeavingOut, signal: AbortSignal): Promise<void> {
  for (const crowd of await selectCrowds(pool, entriesPerDay)) await leaveOut(pool, crowd, entriesPerDay, signal);
}

async function leaveOut(pool: pg.Pool, crowd: Crowd, entriesPerDay: number, signal: AbortSignal): Promise<void> {
  let removed = BATCH_MAX;
  while (removed === BATCH_MAX && !signal.aborted) removed = await leaveOutOf(pool, crowd, entriesPerDay, BATCH_MAX);
}
