import { writeFileSync } from 'node:fs';
import { eventually } from '@latchkey/testkit/eventually';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Fleet, type FleetProcess, startFleet } from '../testing/fleet/fleet.ts';
import { SeededRandom } from '../testing/random.ts';
import { failuresOf, type Restart, restartUnder, tableOf } from '../testing/rolling/roll.ts';
import { startRollingLoad } from '../testing/rolling/rolling-load.ts';

/** How often every process is restarted; one of each service is unless it is set. */
const ROUNDS = process.env.ROLLING_ROUNDS;
/** Where a table of what was seen is written to, where it is wanted. */
const TABLE_FILE = process.env.ROLLING_TABLE;

const SEED = 1;
const PATIENCE = { timeoutMs: 30_000, intervalMs: 50 };

/** Those to be restarted, in the order in which an upgrade goes. */
function inTurn({ processes }: Fleet): FleetProcess[] {
  if (ROUNDS !== undefined) return Array.from({ length: Number(ROUNDS) }, () => processes).flat();
  const random = new SeededRandom(SEED);
  return [...Map.groupBy(processes, ({ service }) => service).values()].map((some) => random.pick(some));
}

/** Promises R8 in the deployed shape, with two of each service. */
describe.skipIf(inject('latchkeyInstance').shape !== 'deployed')('a rolling restart', () => {
  let fleet: Fleet;
  beforeAll(async () => {
    const env = { FILE_COUNT_LIMIT: '100000', STORAGE_ALLOWANCE_MIB: '100000', DRAIN_SECONDS: '1' };
    fleet = await startFleet({ avatarWorkers: 2, env });
  });
  afterAll(() => fleet?.stop());

  it('of one process after the other loses no request, no upload, no download and no event', async () => {
    const load = await startRollingLoad(fleet, SEED);
    const restarts: Restart[] = [];
    await eventually(() => load.changes() > 20, PATIENCE);
    for (const one of inTurn(fleet)) restarts.push(await restartUnder(load, one));
    await load.stop();
    if (TABLE_FILE !== undefined) writeFileSync(TABLE_FILE, tableOf(restarts));
    expect(failuresOf(restarts)).toEqual([]);
    for (const { name, exit, uploading, closes } of restarts) {
      expect([name, exit]).toEqual([name, '0']);
      expect(uploading).toBeGreaterThan(0);
      // Those who listen to the node are told, and nobody else is.
      expect(closes.filter((code) => code !== 1001)).toEqual([]);
      expect([name, closes.length > 0]).toEqual([name, name.startsWith('realtime')]);
    }
    await eventually(() => load.heardAll(), PATIENCE);
    expect(load.sockets.flaws).toEqual([]);
    expect(await load.missingFiles()).toEqual([]);
    await load.sockets.stop();
  }, 1_200_000);
});
