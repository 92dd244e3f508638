import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '@latchkey/testkit/eventually';
import { SeededRandom } from '../client/random.ts';
import { findBreaches, retryUnanswered, settle, watchUsage } from './checker.ts';
import { createLoadDriver } from './load-driver.ts';
import { Violation } from './request.ts';
import { type RevocationWatch, watchRevocations } from './revocations.ts';
import type { Fault, Target } from './target.ts';
import { KINDS, SESSIONS, START_MS_MAX, Workload } from './workload.ts';

/** Time without errors before the requests stop. */
const WELL_MS = 2_000;

/**
 * Injects faults into a target one after the other. The target is stopped at the end.
 *
 * @returns the breaches by fault
 * @throws with the seed and the journal when something is lost
 */
export async function runFaults(
  starting: Promise<Target>,
  { seed, faults, holdMs }: { seed: number; faults: (target: Target, random: SeededRandom) => readonly Fault[]; holdMs: number },
  onResult: (fault: Fault, workload: Workload, breaches: readonly string[]) => void = () => undefined,
): Promise<Record<string, readonly string[]>> {
  const target = await starting;
  const workload = new Workload(target, seed);
  const results: Record<string, readonly string[]> = {};
  try {
    await workload.start();
    for (const fault of faults(target, workload.random)) {
      results[fault.name] = await runFault(workload, fault, holdMs);
      onResult(fault, workload, results[fault.name] ?? []);
    }
    return results;
  } catch (err) {
    const { message } = err as Error;
    throw new Error(`FAULT_SEED=${seed}: ${message}\n${workload.journal(message)}\n${target.output()}`, { cause: err });
  } finally {
    await workload.stop();
  }
}

function throwFirst(results: readonly PromiseSettledResult<unknown>[]): void {
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

/**
 * Breaks something under load, repairs it, waits until all goes well, and checks the promises.
 *
 * @returns what was promised and did not hold
 */
async function runFault(workload: Workload, fault: Fault, holdMs: number): Promise<string[]> {
  workload.note(`** ${fault.name}`);
  workload.samples = [];
  const working = new AbortController();
  const watching = new AbortController();
  const revocations = await watchRevocations(workload);
  const drivers = workload.accounts.flatMap((account, i) =>
    Array.from({ length: SESSIONS[i] ?? 1 }, () =>
      createLoadDriver(workload, account, new SeededRandom(workload.random.below(2 ** 31))),
    ),
  );
  // The first failure ends the run of this fault.
  const guarded = (work: Promise<void>) => work.finally(() => working.abort());
  const work = Promise.allSettled(drivers.map((driver) => guarded(driver.work(working.signal))));
  const usage = Promise.allSettled([guarded(watchUsage(workload, watching.signal))]);
  const times = await breakAndRepair(workload, fault, holdMs, revocations, working.signal).finally(() => working.abort());
  const ended = await work;
  await revocations.stop();
  throwFirst(ended);
  await retryUnanswered(workload);
  watching.abort();
  throwFirst(await usage);
  const losses = await settle(workload);
  return [...times.unsettled, ...revocations.flaws, ...findBreaches(workload, fault, times), ...losses];
}

async function breakAndRepair(
  workload: Workload,
  fault: Fault,
  holdMs: number,
  revocations: RevocationWatch,
  signal: AbortSignal,
) {
  const startedAt = performance.now();
  await waitUntilWell(workload, startedAt, signal).catch((err: Error) => {
    throw new Violation(`Not all went well before: ${fault.name}: ${err.message}`);
  });
  // At a moment that the seed decides.
  await pause(workload.random.below(500));
  const brokenAt = performance.now();
  await fault.breakIt();
  await pause(holdMs / 2);
  const revoking = revocations.revoke();
  await pause(holdMs / 2);
  await fault.repair();
  const repairedAt = performance.now();
  workload.note(`** repaired: ${fault.name}`);
  await revoking;
  const unsettled = await waitUntilWell(workload, repairedAt, signal).then(
    () => [],
    (err: Error) => [`not all goes well again: ${err.message}`],
  );
  return { brokenAt, repairedAt, unsettled };
}

/** Waits until all is ready, every kind of request succeeded since, and none failed lately. */
async function waitUntilWell(workload: Workload, since: number, signal: AbortSignal): Promise<void> {
  const kinds = KINDS.filter((kind) => kind !== 'application');
  const check = async () => {
    if (signal.aborted) return true;
    const recent = workload.samples.filter(({ startedAt }) => startedAt > since);
    const failed = recent.filter((sample) => sample.failed && sample.endedAt > performance.now() - WELL_MS);
    const missing = kinds.filter((kind) => !recent.some((sample) => sample.kind === kind && sample.outcome === '200'));
    if (failed.length > 0) throw new Error(failed.map(({ kind, outcome }) => `${kind} ${outcome}`).join(', '));
    if (missing.length > 0) throw new Error(`no successful ${missing}`);
    if (performance.now() - since < WELL_MS || !workload.areListenersConnected()) return false;
    return workload.target.isReady();
  };
  await eventually(check, { timeoutMs: START_MS_MAX, intervalMs: 250 });
}
