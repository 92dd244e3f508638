import { randomInt } from 'node:crypto';
import { integerSetting, readConfig } from '@latchkey/kit/config';
import { z } from 'zod';
import { runFaults } from './run-faults.ts';
import { addCounts, type Counts, newCounts } from './world.ts';

/** Rounds of one game on one data folder. */
const ROUNDS = 6;
const SEED_MAX = 2 ** 31;

const settings = z.object({
  FAULT_MINUTES: integerSetting(1, 100_000).default(10),
  /** Plays the game of this seed, and no other. */
  FAULT_SEED: integerSetting(0, SEED_MAX).optional(),
  /** Plays in this shape only; in both by turns unless set. */
  FAULT_SHAPE: z.enum(['standalone', 'deployed']).optional(),
  /** Whether the data folder of a game that failed is kept. */
  FAULT_KEEP: z.enum(['true', 'false']).default('false'),
});

const { FAULT_MINUTES, FAULT_SEED, FAULT_SHAPE, FAULT_KEEP } = readConfig(settings, process.env);
const endAt = performance.now() + FAULT_MINUTES * 60_000;
const sum = newCounts();

for (let game = 0; game === 0 || (FAULT_SEED === undefined && performance.now() < endAt); game += 1) {
  const shape = FAULT_SHAPE ?? (game % 2 === 0 ? 'standalone' : 'deployed');
  const seed = FAULT_SEED ?? randomInt(SEED_MAX);
  const counts = await runFaults({ shape, seed, rounds: ROUNDS, keep: FAULT_KEEP === 'true' }).catch((err: Error) => {
    process.stderr.write(`${err.message}\n`);
    process.exit(1);
  });
  addCounts(sum, counts);
  process.stdout.write(`${shape} FAULT_SEED=${seed}: ${tell(counts)}\n`);
}
process.stdout.write(`All: ${tell(sum)}\n`);

function tell(counts: Counts): string {
  const killed = Object.entries(counts.kills).map(([victim, times]) => `${victim} ${times}`);
  const slowest = counts.settledLast === '' ? '' : `, last ${counts.settledLast.split('\n')[0]}`;
  return [
    `${counts.rounds} rounds, killed ${killed.join(', ') || 'nothing'}`,
    `${counts.uploads} uploads: ${counts.stored} stored, ${counts.refused} refused, ${counts.cut} cut by the client, ${counts.lost} lost`,
    `${counts.inDoubt} in doubt, ${counts.foundThere} of which were there, and ${counts.changesInDoubt} other changes; ${counts.retried} retried`,
    `limits looked at ${counts.samples} times; all agreed after ${counts.settledMsMax} ms at most${slowest}`,
  ].join('; ');
}
