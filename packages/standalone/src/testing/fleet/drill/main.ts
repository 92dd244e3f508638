import { randomInt } from 'node:crypto';
import { integerSetting, readConfig } from '@latchkey/kit/config';
import { z } from 'zod';
import { FAULTS } from './faults.ts';
import { runDrill } from './run-drill.ts';
import { tableHead, toRow } from './table.ts';

const SEED_MAX = 2 ** 31;

const settings = z.object({
  /** Decides what is left to chance. */
  FAULT_SEED: integerSetting(0, SEED_MAX).optional(),
  /** How long each fault holds. */
  FAULT_SECONDS: integerSetting(1, 600).default(8),
  /** Only faults whose name contains it. */
  FAULT_NAME: z.string().default(''),
});

const { FAULT_SEED, FAULT_SECONDS, FAULT_NAME } = readConfig(settings, process.env);
const seed = FAULT_SEED ?? randomInt(SEED_MAX);
const faults = FAULTS.filter(({ name }) => name.includes(FAULT_NAME));
const say = (line: string) => process.stdout.write(`${line}\n`);

say(`FAULT_SEED=${seed}, ${new Date().toISOString()}: two of each service, each fault for ${FAULT_SECONDS} s.\n\n${tableHead()}`);
const results = await runDrill({ seed, faults, holdMs: FAULT_SECONDS * 1_000, onResult: (result) => say(toRow(result)) });
const requests = results.reduce((sum, { samples }) => sum + samples.length, 0);
const broken = results.filter(({ breaches }) => breaches.length > 0);
say(`\n${requests} requests since something broke; ${broken.length} of ${results.length} faults broke a promise.`);
process.exitCode = broken.length > 0 ? 1 : 0;
