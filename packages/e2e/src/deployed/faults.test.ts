import { randomInt } from 'node:crypto';
import { expect, inject, it } from 'vitest';
import { runFaults } from '../faults/fault-run.ts';
import { startStandaloneTarget } from '../faults/standalone-target.ts';
import '../instance/shared-instance.ts';

const SEED = Number(process.env.FAULT_SEED ?? randomInt(2 ** 31));

/**
 * R1 to R6 in a short run, which starts its servers itself. `npm run test:faults` runs longer
 * ones; FAULT_SEED repeats one.
 */
it.runIf(inject('latchkeyInstance').shape === 'deployed')(
  `successful requests keep their effect and no remains stay after everything is killed (FAULT_SEED=${SEED})`,
  async () => {
    const faults = ({ faults: all }: Awaited<ReturnType<typeof startStandaloneTarget>>) => all.slice(0, 1);
    expect(await runFaults(startStandaloneTarget(), { seed: SEED, faults, holdMs: 0 })).toEqual({ 'everything killed': [] });
  },
  400_000,
);
