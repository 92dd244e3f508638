import { randomInt } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { cutUploads } from '../faults/cut-uploads.ts';
import { runFaults } from '../faults/fault-run.ts';
import { repeatChanges } from '../faults/repeated-changes.ts';
import { startStandaloneTarget } from '../faults/standalone-target.ts';
import type { Target } from '../faults/target.ts';
import '../instance/shared-instance.ts';

const SEED = Number(process.env.FAULT_SEED ?? randomInt(2 ** 31));

/**
 * R1 to R6, R15 and R16 in short runs, which start their servers themselves. `npm run test:all` and
 * `npm run test:faults` run longer ones; FAULT_SEED repeats one.
 */
describe.runIf(inject('latchkeyInstance').shape === 'deployed')(`while everything is killed (FAULT_SEED=${SEED})`, () => {
  let target: Target;
  beforeAll(async () => {
    target = await startStandaloneTarget();
  });
  afterAll(() => target?.stop());

  it('a change with an idempotency key has its effect once', async () => {
    const { changes } = await repeatChanges(target, { seed: SEED, changes: 40, clients: 4, killsMax: 1 });
    expect(changes).toBeGreaterThanOrEqual(40);
  });

  it('a resumable upload loses no acknowledged byte', async () => {
    const { requests } = await cutUploads(target, { seed: SEED, uploads: 6, clients: 4, killsMax: 1, isSettled: false });
    expect(requests).toBeGreaterThan(6);
  });

  it('successful requests keep their effect and no remains stay', async () => {
    const faults = ({ faults: all }: Target) => all.slice(0, 1);
    expect(await runFaults(Promise.resolve(target), { seed: SEED, faults, holdMs: 0 })).toEqual({ 'everything killed': [] });
  }, 400_000);
});
