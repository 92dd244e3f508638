import { randomInt } from 'node:crypto';
import { integerSetting, readConfig } from '@latchkey/kit/config/settings';
import { z } from 'zod';
import { runFaults } from './fault-run.ts';
import { startFleetTarget } from './fleet-target.ts';
import { startS3Store } from './s3-store.ts';
import { mountSmallDisk, startStandaloneTarget } from './standalone-target.ts';

const SEED_MAX = 2 ** 31;

const settings = z.object({
  FAULT_MINUTES: integerSetting(1, 100_000).default(10),
  /** Makes the run of this seed alone. */
  FAULT_SEED: integerSetting(0, SEED_MAX).optional(),
  /** Length of each fault. */
  FAULT_SECONDS: integerSetting(1, 600).default(4),
  /** Only faults whose name contains it. */
  FAULT_NAME: z.string().default(''),
});

/** Every target by its name on the command line. */
const TARGETS = {
  standalone: () => startStandaloneTarget(),
  s3: async () => startStandaloneTarget(await startS3Store()),
  disk: () => startStandaloneTarget(mountSmallDisk()),
  fleet: () => startFleetTarget(),
};

const { FAULT_MINUTES, FAULT_SEED, FAULT_SECONDS, FAULT_NAME } = readConfig(settings, process.env);
const endAt = performance.now() + FAULT_MINUTES * 60_000;
const names = (process.argv.length > 2 ? process.argv.slice(2) : Object.keys(TARGETS)) as Array<keyof typeof TARGETS>;
const say = (line: string) => process.stdout.write(`${line}\n`);
for (let run = 0; run === 0 || (FAULT_SEED === undefined && performance.now() < endAt); run += 1) {
  const name = names[run % names.length] as keyof typeof TARGETS;
  const seed = FAULT_SEED ?? randomInt(SEED_MAX);
  say(`${name} FAULT_SEED=${seed}`);
  const faults = ({ faults: all }: Awaited<ReturnType<typeof startFleetTarget>>) =>
    all.filter((fault) => fault.name.includes(FAULT_NAME));
  const options = { seed, faults, holdMs: FAULT_SECONDS * 1_000 };
  const results = await runFaults(TARGETS[name](), options, (fault, { samples }, breaches) => {
    const failed = samples.filter((sample) => sample.failed);
    say(`  ${fault.name}: ${samples.length} requests, ${failed.length} failed; ${breaches.join('; ') || 'kept every promise'}`);
  });
  if (Object.values(results).some((breaches) => breaches.length > 0)) process.exitCode = 1;
}
