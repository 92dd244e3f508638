import { randomInt } from 'node:crypto';
import { describe, expect, inject, it } from 'vitest';
import type { SeededRandom } from '../client/random.ts';
import { runFaults } from './fault-run.ts';
import { startFleetTarget } from './fleet-target.ts';
import { startS3Store } from './s3-store.ts';
import { mountSmallDisk, startStandaloneTarget } from './standalone-target.ts';
import type { Fault, Target } from './target.ts';
import '../instance/shared-instance.ts';

const { shape } = inject('latchkeyInstance');
const SEED = Number(process.env.FAULT_SEED ?? randomInt(2 ** 31));
const TIMEOUT_MS = 900_000;

/** Injects all or the chosen faults, and expects that every promise held. */
async function expectHeld(starting: Promise<Target>, choose = (all: readonly Fault[], _random: SeededRandom) => all) {
  const results = await runFaults(starting, {
    seed: SEED,
    holdMs: 2_500,
    faults: ({ faults }, random) => choose(faults, random),
  });
  expect(Object.keys(results).length).toBeGreaterThan(0);
  expect(Object.entries(results).filter(([, breaches]) => breaches.length > 0)).toEqual([]);
}

/** R1 to R6, R8, R9 and R13. A failure names its FAULT_SEED, which repeats the run. */
describe.runIf(shape === 'standalone')(`one process holds its promises (FAULT_SEED=${SEED})`, () => {
  it('whatever is killed or stopped', () => expectHeld(startStandaloneTarget()), TIMEOUT_MS);

  it(
    'whatever goes wrong with its object store',
    async () => expectHeld(startStandaloneTarget(await startS3Store())),
    TIMEOUT_MS,
  );

  it('while its disk is full', async ({ skip }) => {
    const disk = mountSmallDisk();
    if (!disk) return skip('no small file system can be mounted here');
    await expectHeld(startStandaloneTarget(disk));
  });
});

/** R5, R6, R8, R9 and R11. `npm run test:faults fleet` injects every fault of every process. */
describe.runIf(shape === 'deployed')(`two processes of each service hold their promises (FAULT_SEED=${SEED})`, () => {
  it(
    'whatever breaks',
    () => {
      const choose = (all: readonly Fault[], random: SeededRandom) => {
        const one = (name: RegExp) => random.pick(all.filter((fault) => name.test(fault.name)));
        const services = ['apps', 'identity', 'files', 'gateway', 'realtime', 'avatar-worker'];
        const ways = [/killed$/, /frozen$/, /cut off$/, /refusing$/].map((way) => one(new RegExp(`^[a-z].*${way.source}`)));
        const servers = [one(/^Redis/), one(/^PostgreSQL/)];
        return [
          ...ways,
          ...servers,
          ...services.map((service) => one(new RegExp(`^${service}-. restarted`))),
          one(/^credential/),
        ];
      };
      return expectHeld(startFleetTarget(), choose);
    },
    TIMEOUT_MS,
  );
});
