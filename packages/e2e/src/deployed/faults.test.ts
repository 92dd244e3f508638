import { randomInt } from 'node:crypto';
import { expect, it } from 'vitest';
import { runFaults } from '../faults/fault-run.ts';
import { startStandaloneTarget } from '../faults/standalone-target.ts';
import type { Target } from '../faults/target.ts';

const SEED = Number(process.env.FAULT_SEED ?? randomInt(2 ** 31));

/**
 * R1 to R6 in one short run. `npm run test:all` and `npm run test:faults` run longer ones;
 * FAULT_SEED repeats one.
 */
it(`successful requests keep their effect and no remains stay, while everything is killed (FAULT_SEED=${SEED})`, async () => {
  const faults = ({ faults: all }: Target) => all.slice(0, 1);
  expect(await runFaults(startStandaloneTarget(), { seed: SEED, faults, holdMs: 0 })).toEqual({ 'everything killed': [] });
}, 400_000);
