import { type Retention, trimEvents } from '../retention/retention.ts';
import { openDatabase } from './open-database.ts';
import type { OwnedRef, TestApps } from './test-apps.ts';

/** What the service keeps unless it is told otherwise. */
export const DEFAULTS: Retention = { eventHours: 24, eventCount: 1_000, deletionDays: 30 };

/** Trims the log once, as of the test's clock. */
export function trim(apps: TestApps, retention: Partial<Retention> = {}, signal = new AbortController().signal): Promise<void> {
  const trimming = { db: openDatabase(apps.url), clock: apps.clock.now, retention: { ...DEFAULTS, ...retention } };
  return trimEvents(trimming, signal);
}

/** The sequences that the log has of an application, as live clients are told. */
export async function heldSequences(apps: TestApps, applicationId: string): Promise<number[]> {
  const held: number[] = [];
  for (let count = -1; count !== held.length; ) {
    count = held.length;
    const { events } = await apps.client.listApplicationEvents({ applicationId, afterSequence: BigInt(held.at(-1) ?? 0) });
    held.push(...events.map(({ sequence }) => Number(sequence)));
  }
  return held;
}

/** Gives an application so many new versions. */
export async function changeVersion({ client }: Pick<TestApps, 'client'>, ref: OwnedRef, count = 1): Promise<void> {
  for (let i = 0; i < count; i += 1) {
    const value = { case: 'stringValue', value: `${Date.now()}.${i}.${Math.random()}` } as const;
    await client.updateApplicationSetting({ ...ref, field: 'version', value });
  }
}

/** The numbers from one to another. */
export function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}
