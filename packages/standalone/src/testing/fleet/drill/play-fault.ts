import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '@latchkey/testkit/eventually';
import type { Fault } from './faults.ts';
import { findLosses, latestEventMs } from './findings.ts';
import { type DrillLoad, KINDS, startDrillLoad } from './load.ts';
import { findBreaches } from './promises.ts';
import { RevocationWatch } from './revocations.ts';
import { type Sample, succeeded, tellFailures } from './samples.ts';
import { watchWork } from './victim.ts';
import { renewApplications, type World } from './world.ts';

/** What a fault did. */
export interface FaultResult {
  readonly name: string;
  /** What was sent from the fault on, or was under way then. */
  readonly samples: readonly Sample[];
  /** Time from the fault to the last failure, and from its end to the last failure; 0 where there was none. */
  readonly lastFailureMs: number;
  readonly unhealthyMs: number;
  /** Time from an answered change to the last listener that heard of it, at most. */
  readonly latestEventMs: number;
  /** What had been promised and did not hold. */
  readonly breaches: readonly string[];
}

/** When a fault began and ended, as `performance.now()` counts. */
interface Span {
  readonly brokenAt: number;
  readonly mendedAt: number;
  /** What did not go well again in time; empty where all did. */
  readonly unsettled: string;
}

/** How long all goes well before and after a fault, and how long it may take until then, in milliseconds. */
const BEFORE_MS = 1_000;
const HEALTHY_MS = 2_500;
const SETTLED_MS_MAX = 30_000;

/** Breaks something under load, mends it, waits until all goes well, and looks what became of what was promised. */
export async function playFault(world: World, fault: Fault, holdMs: number): Promise<FaultResult> {
  await renewApplications(world);
  const watch = await RevocationWatch.start(world);
  const load = startDrillLoad(world);
  const span = await breakAndMend(world, fault, holdMs, watch).finally(() => end(load, watch));
  const samples = world.samples.since(span.brokenAt);
  const lastFailureAt = Math.max(0, ...samples.filter((sample) => !succeeded(sample)).map(({ endedAt }) => endedAt));
  const result = {
    name: fault.name,
    samples,
    lastFailureMs: Math.max(0, lastFailureAt - span.brokenAt),
    unhealthyMs: Math.max(0, lastFailureAt - span.mendedAt),
  };
  const losses = await findLosses(world);
  const flaws = [
    ...(span.unsettled ? [span.unsettled] : []),
    ...world.samples.takeFlaws(),
    ...watch.samples.flaws,
    ...watch.flaws,
  ];
  const breaches = [...flaws, ...losses, ...findBreaches(fault, result)];
  return { ...result, latestEventMs: latestEventMs(world, span.brokenAt), breaches };
}

async function end(load: DrillLoad, watch: RevocationWatch): Promise<void> {
  await load.stop();
  await watch.stop();
}

async function breakAndMend(world: World, fault: Fault, holdMs: number, watch: RevocationWatch): Promise<Span> {
  const { samples, fleet } = world;
  const busiest = watchWork(fleet);
  const begunAt = performance.now();
  await eventually(() => samples.hasEachSince(begunAt, KINDS), { timeoutMs: SETTLED_MS_MAX }).catch(() => {
    throw new Error(`${fault.name}: not all went well before: ${tellFailures(samples.since(begunAt))}`);
  });
  await pause(BEFORE_MS);
  const brokenAt = performance.now();
  const victim = busiest(fault.service ?? 'gateway');
  await fault.breakIt(world, victim);
  await pause(holdMs / 4);
  const revoking = watch.revoke();
  await pause((holdMs * 3) / 4);
  await fault.mend(world, victim);
  const mendedAt = performance.now();
  await revoking;
  const goesWell = async () => {
    const since = performance.now() - HEALTHY_MS;
    if (since < mendedAt || !samples.isHealthySince(since) || !samples.hasEachSince(mendedAt, KINDS)) return false;
    return (await Promise.all(fleet.processes.map((one) => one.isReady()))).every(Boolean);
  };
  const unsettled = await eventually(goesWell, { timeoutMs: SETTLED_MS_MAX, intervalMs: 50 }).then(
    () => '',
    () => `not all goes well again: ${tellFailures(samples.since(mendedAt)) || 'not all is ready, or nothing is answered'}`,
  );
  return { brokenAt, mendedAt, unsettled };
}
