import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '@latchkey/testkit/eventually';
import { SeededRandom } from '../random.ts';
import { Actor } from './actor.ts';
import { findBreaches, retryUnanswered, settle, watchUsage } from './checker.ts';
import { Game, type Kind, SESSIONS, START_MS_MAX, STEPS } from './game.ts';
import { Violation } from './request.ts';
import { RevocationWatch } from './revocations.ts';
import type { Fault, Target } from './target.ts';

/** How long all must go well before the requests stop. */
const WELL_MS = 2_000;
/** Kinds of requests that must succeed before and after a fault. */
const KINDS = (Object.keys(STEPS) as Kind[]).filter((kind) => kind !== 'download' && kind !== 'application');

/**
 * Plays faults one after the other on a target, which is stopped at the end.
 *
 * @returns the breaches by fault
 * @throws with the seed and the journal when something is lost
 */
export async function playGame(
  starting: Promise<Target>,
  { seed, faults, holdMs }: { seed: number; faults: (target: Target, random: SeededRandom) => readonly Fault[]; holdMs: number },
  onResult: (fault: Fault, game: Game, breaches: readonly string[]) => void = () => undefined,
): Promise<Record<string, readonly string[]>> {
  const target = await starting;
  const game = new Game(target, seed);
  const results: Record<string, readonly string[]> = {};
  try {
    await game.start();
    for (const fault of faults(target, game.random)) {
      results[fault.name] = await play(game, fault, holdMs);
      onResult(fault, game, results[fault.name] ?? []);
    }
    return results;
  } catch (err) {
    const { message } = err as Error;
    throw new Error(`FAULT_SEED=${seed}: ${message}\n${game.journal(message)}\n${target.output()}`, { cause: err });
  } finally {
    await game.stop();
  }
}

/**
 * Breaks something under load, repairs it, waits until all goes well, and checks the promises.
 *
 * @returns what was promised and did not hold
 */
async function play(game: Game, fault: Fault, holdMs: number): Promise<string[]> {
  game.note(`** ${fault.name}`);
  game.samples = [];
  const working = new AbortController();
  const watching = new AbortController();
  const revocations = await RevocationWatch.start(game);
  const actors = game.accounts.flatMap((account, i) =>
    Array.from({ length: SESSIONS[i] ?? 1 }, () => new Actor(game, account, new SeededRandom(game.random.below(2 ** 31)))),
  );
  // The first failure ends the round.
  const guarded = (work: Promise<void>) => work.finally(() => working.abort());
  const work = Promise.allSettled(actors.map((actor) => guarded(actor.work(working.signal))));
  const usage = Promise.allSettled([guarded(watchUsage(game, watching.signal))]);
  const times = await breakAndRepair(game, fault, holdMs, revocations, working.signal).finally(() => working.abort());
  const ended = await work;
  await revocations.stop();
  throwFirst(ended);
  await retryUnanswered(game);
  watching.abort();
  throwFirst(await usage);
  const losses = await settle(game);
  return [...times.unsettled, ...revocations.flaws, ...findBreaches(game, fault, times), ...losses];
}

async function breakAndRepair(game: Game, fault: Fault, holdMs: number, revocations: RevocationWatch, signal: AbortSignal) {
  const startedAt = performance.now();
  await whenWell(game, startedAt, signal).catch((err: Error) => {
    throw new Violation(`Not all went well before: ${fault.name}: ${err.message}`);
  });
  // At a moment that the seed decides.
  await pause(game.random.below(500));
  const brokenAt = performance.now();
  await fault.breakIt();
  await pause(holdMs / 2);
  const revoking = revocations.revoke();
  await pause(holdMs / 2);
  await fault.repair();
  const repairedAt = performance.now();
  game.note(`** repaired: ${fault.name}`);
  await revoking;
  const unsettled = await whenWell(game, repairedAt, signal).then(
    () => [],
    (err: Error) => [`not all goes well again: ${err.message}`],
  );
  return { brokenAt, repairedAt, unsettled };
}

/** Waits until all is ready, every kind of request succeeded since, and none failed lately. */
async function whenWell(game: Game, since: number, signal: AbortSignal): Promise<void> {
  const check = async () => {
    if (signal.aborted) return true;
    const recent = game.samples.filter(({ startedAt }) => startedAt > since);
    const failed = recent.filter((sample) => sample.failed && sample.endedAt > performance.now() - WELL_MS);
    const missing = KINDS.filter((kind) => !recent.some((sample) => sample.kind === kind && sample.outcome === '200'));
    if (failed.length > 0) throw new Error(failed.map(({ kind, outcome }) => `${kind} ${outcome}`).join(', '));
    if (missing.length > 0) throw new Error(`no successful ${missing}`);
    if (performance.now() - since < WELL_MS || !game.areListenersConnected()) return false;
    return game.target.isReady();
  };
  await eventually(check, { timeoutMs: START_MS_MAX, intervalMs: 50 });
}

function throwFirst(results: readonly PromiseSettledResult<unknown>[]): void {
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}
