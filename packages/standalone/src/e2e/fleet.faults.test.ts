import { randomInt } from 'node:crypto';
import { describe, expect, inject, it } from 'vitest';
import { FAULTS, type Fault } from '../testing/fleet/drill/faults.ts';
import { runDrill } from '../testing/fleet/drill/run-drill.ts';
import { toRow } from '../testing/fleet/drill/table.ts';
import { SeededRandom } from '../testing/random.ts';
import '../testing/provided.ts';

/**
 * Promises R5, R6, R9 and R11 with two of each service under load, of which one thing after the other breaks. A choice of faults, one of each kind;
 * `npm run test:faults fleet` goes through all of them, for longer, and tells what clients saw. `FAULT_SEED` plays a choice again.
 */
const HOLD_MS = 2_500;
const SEED = Number(process.env.FAULT_SEED ?? randomInt(2 ** 31));

/** A process that is killed, one that hangs, and a server that goes away or hangs. After a fault of files a sweeper may take a minute. */
function choose(random: SeededRandom): Fault[] {
  const of = (test: RegExp) => random.pick(FAULTS.filter(({ name }) => test.test(name)));
  return [
    of(/^(apps|identity|gateway|realtime) killed$/),
    of(/^(apps|identity|gateway) (frozen|cut off)$/),
    of(/^(Redis|PostgreSQL)/),
  ];
}

describe.skipIf(inject('latchkeyInstance').shape !== 'deployed')('two of each service', () => {
  it(`keep what was promised, whatever breaks (FAULT_SEED=${SEED})`, async () => {
    const results = await runDrill({ seed: SEED, faults: choose(new SeededRandom(SEED)), holdMs: HOLD_MS });
    expect(results.map(({ name }) => name)).toHaveLength(3);
    for (const result of results) expect(result.breaches, toRow(result)).toEqual([]);
  }, 240_000);
});
