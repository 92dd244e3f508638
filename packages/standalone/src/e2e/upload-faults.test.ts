import { expect, inject, it } from 'vitest';
import { runFaults } from '../testing/faults/run-faults.ts';
import '../testing/provided.ts';

/**
 * Promises R1-R4: uploads, and whatever else is done with files, while processes are killed at random moments. `npm run test:faults` goes on for as
 * long as one likes; what fails there is told with its seed, which may be added here. Each shape plays one game of its own.
 */
const SEEDS = { standalone: [7], deployed: [1] }[inject('latchkeyInstance').shape];
const ROUNDS = 2;

it.each(SEEDS)(
  'what was answered holds and nothing is left over, whatever is killed (seed %i)',
  async (seed) => {
    const { shape } = inject('latchkeyInstance');
    const counts = await runFaults({ shape, seed, rounds: ROUNDS });
    expect(counts.rounds).toBe(ROUNDS);
    expect(Object.keys(counts.kills).length).toBeGreaterThan(0);
    for (const count of [counts.stored, counts.samples]) expect(count).toBeGreaterThan(0);
  },
  240_000,
);

it('several clients of one account at the edge of its allowance never get more, whatever is killed', async () => {
  const { shape } = inject('latchkeyInstance');
  const counts = await runFaults({ shape, seed: 3, rounds: 1, sessions: [8], allowance: { mib: 5, files: 3 } });
  expect(counts.uploads).toBeGreaterThan(10);
  expect(counts.samples).toBeGreaterThan(0);
});
