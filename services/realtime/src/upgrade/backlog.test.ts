import type { DomainError } from '@latchkey/kit/errors/errors';
import { beforeEach, expect, it } from 'vitest';
import { createUpgradeBacklog, UPGRADES_MAX, UPGRADES_PER_NETWORK, type UpgradeBacklog } from './backlog.ts';

let now: number;
let chance: number;
let backlog: UpgradeBacklog;
beforeEach(() => {
  [now, chance] = [0, 0];
  backlog = createUpgradeBacklog({ now: () => now, random: () => chance });
});

/** Begins upgrades of as many networks as they need. */
function begin(count: number): Array<() => void> {
  return Array.from({ length: count }, (_, i) => backlog.enter(`${i % 5}`));
}

function rejection(network = 'x'): DomainError | undefined {
  try {
    backlog.enter(network)();
  } catch (err) {
    return err as DomainError;
  }
  return undefined;
}

const retrySeconds = () => Number(rejection()?.metadata.retryAfterSeconds);

it('rejects upgrades beyond the limit, and those of a network beyond its own', () => {
  for (let i = 0; i < UPGRADES_PER_NETWORK; i += 1) backlog.enter('x');
  expect(rejection()).toMatchObject({ reason: 'queue_full', httpStatus: 429, metadata: { limit: '1000' } });
  expect(rejection('y')).toBeUndefined();
  const [leave] = begin(UPGRADES_MAX - UPGRADES_PER_NETWORK);
  expect(rejection('y')).toMatchObject({ reason: 'node_busy', httpStatus: 503 });
  leave?.();
  expect(rejection('y')).toBeUndefined();
});

it('begins no more upgrades than end in half of their deadline', () => {
  const slow = begin(1_000);
  for (const leave of slow.slice(0, 500)) {
    now += 1;
    leave();
  }
  expect(backlog.getMax()).toBeGreaterThan(1_990);
  expect(backlog.getMax()).toBeLessThan(2_020);
});

it('tells rejected clients to return one after the other, when the backlog has ended, at random', () => {
  begin(UPGRADES_MAX);
  // 4,000 of half a millisecond each.
  expect(retrySeconds()).toBe(3);
  for (let i = 0; i < 2_000; i += 1) rejection();
  expect(retrySeconds()).toBe(5);
  chance = 1;
  expect(retrySeconds()).toBe(6);
  chance = 0;
  now += 2_000;
  expect(retrySeconds()).toBe(3);
  for (let i = 0; i < 60_000; i += 1) rejection();
  expect(retrySeconds()).toBe(60);
});
