import { SeededRandom } from '../../random.ts';
import { startFleet } from '../fleet.ts';
import type { Fault } from './faults.ts';
import { Links } from './links.ts';
import { type FaultResult, playFault } from './play-fault.ts';
import { startServers } from './servers.ts';
import { createWorld, leaveWorld } from './world.ts';

/** Which faults are played, and for how long each holds. */
export interface Drill {
  readonly seed: number;
  readonly faults: readonly Fault[];
  readonly holdMs: number;
  /** Is told of each fault as it is over. */
  readonly onResult?: (result: FaultResult) => void;
}

const SETTINGS = {
  UPLOAD_LEASE_SECONDS: '3',
  SWEEP_INTERVAL_SECONDS: '1',
  STORAGE_ALLOWANCE_MIB: '100000',
  FILE_COUNT_LIMIT: '100000',
};

/** Starts two of each service on servers of their own, and breaks one thing after the other. */
export async function runDrill({ seed, faults, holdMs, onResult }: Drill): Promise<FaultResult[]> {
  const servers = await startServers();
  const links = new Links();
  const undo: Array<() => Promise<unknown>> = [() => servers.remove(), () => links.close()];
  try {
    const fleet = await startFleet({
      avatarWorkers: 2,
      databaseUrl: servers.postgres.url,
      redisUrl: servers.redis.url,
      env: SETTINGS,
      // A process that hangs is passed over while the fault lasts.
      probeFailuresMax: 2,
      wire: links.wire,
    });
    undo.push(() => fleet.stop());
    const world = await createWorld({ fleet, links, servers, random: new SeededRandom(seed) });
    undo.push(() => leaveWorld(world));
    const results: FaultResult[] = [];
    for (const fault of faults) {
      const result = await playFault(world, fault, holdMs);
      results.push(result);
      onResult?.(result);
    }
    return results;
  } finally {
    for (const step of undo.reverse()) await step();
  }
}
