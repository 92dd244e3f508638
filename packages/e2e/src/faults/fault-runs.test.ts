import { randomInt } from 'node:crypto';
import { describe, expect, inject, it } from 'vitest';
import type { SeededRandom } from '../client/random.ts';
import { cutUploads } from './cut-uploads.ts';
import { runFaults } from './fault-run.ts';
import { startFleetTarget } from './fleet-target.ts';
import { repeatChanges } from './repeated-changes.ts';
import { startS3Store } from './s3-store.ts';
import { mountSmallDisk, type OwnStore, startStandaloneTarget } from './standalone-target.ts';
import type { Fault, Target } from './target.ts';
import '../instance/shared-instance.ts';

const { shape } = inject('latchkeyInstance');
const SEED = Number(process.env.FAULT_SEED ?? randomInt(2 ** 31));
/** Ten thousand changes and some 150 restarts take 5 minutes, and 13 on a busy machine. */
const TIMEOUT_MS = 1_800_000;

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

/** Changes, and uploads, of each run; all runs together have twice and four times as many. */
const CHANGES = Number(process.env.FAULT_CHANGES ?? 5_000);
const UPLOADS = Number(process.env.FAULT_UPLOADS ?? 75);

async function withTarget<T>(starting: Promise<Target>, use: (target: Target) => Promise<T>): Promise<T> {
  const target = await starting;
  try {
    return await use(target);
  } catch (err) {
    throw new Error(`FAULT_SEED=${SEED}: ${(err as Error).message}\n${target.output()}`, { cause: err });
  } finally {
    await target.stop();
  }
}

/** R15. Prints what was killed how often. */
async function expectExactlyOnce(starting: Promise<Target>) {
  const run = await withTarget(starting, (target) => repeatChanges(target, { seed: SEED, changes: CHANGES, clients: 6 }));
  process.stdout.write(`${JSON.stringify(run)}\n`);
  expect(run.changes).toBeGreaterThanOrEqual(CHANGES);
}

/** R16. */
async function expectNothingLost(starting: Promise<Target>) {
  const run = await withTarget(starting, (target) => cutUploads(target, { seed: SEED, uploads: UPLOADS, clients: 4 }));
  process.stdout.write(`${JSON.stringify(run)}\n`);
  expect(run.requests).toBeGreaterThan(UPLOADS);
}

type Run = readonly [name: string, expectation: (starting: Promise<Target>) => Promise<void>, start: () => Promise<Target>];

const startWithS3 = async (start: (own: OwnStore) => Promise<Target>) => start(await startS3Store());

/** R1 to R6, R8, R9, R13, R15 and R16. A failure names its FAULT_SEED, which repeats the run. */
describe.runIf(shape === 'standalone')(`one process holds its promises (FAULT_SEED=${SEED})`, () => {
  it.each<Run>([
    ['whatever is killed or stopped', expectHeld, startStandaloneTarget],
    ['whatever goes wrong with its object store', expectHeld, () => startWithS3(startStandaloneTarget)],
    ['with idempotency keys, whatever is killed', expectExactlyOnce, startStandaloneTarget],
    ['with uploads that break off, whatever is killed', expectNothingLost, startStandaloneTarget],
    ['with uploads that break off to S3, whatever is killed', expectNothingLost, () => startWithS3(startStandaloneTarget)],
  ])('%s', async (_name, expectation, start) => expectation(start()), TIMEOUT_MS);

  it('while its disk is full', async ({ skip }) => {
    const disk = mountSmallDisk();
    if (!disk) return skip('no small file system can be mounted here');
    await expectHeld(startStandaloneTarget(disk));
  });
});

/** Some faults of every kind. `npm run test:faults fleet` injects every fault of every process. */
function chooseSome(all: readonly Fault[], random: SeededRandom): readonly Fault[] {
  const one = (name: RegExp) => random.pick(all.filter((fault) => name.test(fault.name)));
  const services = ['apps', 'identity', 'files', 'gateway', 'realtime', 'avatar-worker'];
  const ways = [/killed$/, /frozen$/, /cut off$/, /refusing$/].map((way) => one(new RegExp(`^[a-z].*${way.source}`)));
  const restarts = services.map((service) => one(new RegExp(`^${service}-. restarted`)));
  return [...ways, one(/^Redis/), one(/^PostgreSQL/), ...restarts, one(/^credential/)];
}

/** R5, R6, R8, R9, R11, R15 and R16. */
describe.runIf(shape === 'deployed')(`two processes of each service hold their promises (FAULT_SEED=${SEED})`, () => {
  it.each<Run>([
    ['whatever breaks', (starting) => expectHeld(starting, chooseSome), startFleetTarget],
    ['with idempotency keys, whatever is killed', expectExactlyOnce, startFleetTarget],
    ['with uploads that break off, whatever is killed', expectNothingLost, startFleetTarget],
    ['with uploads that break off to S3, whatever is killed', expectNothingLost, () => startWithS3(startFleetTarget)],
  ])('%s', async (_name, expectation, start) => expectation(start()), TIMEOUT_MS);
});
