import { setTimeout as pause } from 'node:timers/promises';
import type { Shape } from '../../settings.ts';
import { SeededRandom } from '../random.ts';
import { addApplication, createAccount, type Unanswered } from './account.ts';
import { Actor } from './actor.ts';
import { viewOfDisk } from './holdings.ts';
import { type Allowance, watchLimits } from './limits-watch.ts';
import { retry } from './retries.ts';
import { settle } from './settle.ts';
import { Subject, VICTIMS, type Victim } from './subject.ts';
import { type Counts, Journal, newCounts, type World } from './world.ts';

/** One game: what is done, what is killed and when follows from the seed, as far as the machine lets it. */
export interface FaultRun {
  readonly shape: Shape;
  readonly seed: number;
  readonly rounds: number;
  /** Clients of each account that are at work at the same time. */
  readonly sessions?: readonly number[];
  /** What each account may have. */
  readonly allowance?: Allowance;
  /** Whether the journal is told and the data are kept. */
  readonly keep?: boolean;
}

const ALLOWANCE: Allowance = { mib: 32, files: 24 };
const SESSIONS = [1, 1, 2, 4];

const ROUND_MS = 2_000;
const FAULTS_PER_ROUND_MAX = 3;
const RETRIES_PER_ACCOUNT_MAX = 4;

const SETTINGS = {
  UPLOAD_LEASE_SECONDS: '1',
  SWEEP_INTERVAL_SECONDS: '1',
  UPLOAD_DEADLINE_SECONDS: '10',
};

/**
 * Plays a game to its end.
 *
 * @returns what happened
 * @throws with the seed and the last events, when something that was promised does not hold
 */
export async function runFaults(run: FaultRun): Promise<Counts> {
  const { shape, seed, rounds, sessions = SESSIONS, allowance = ALLOWANCE, keep = false } = run;
  const limits = { STORAGE_ALLOWANCE_MIB: String(allowance.mib), FILE_COUNT_LIMIT: String(allowance.files) };
  const subject = new Subject(shape, { ...SETTINGS, ...limits });
  const journal = new Journal();
  const random = new SeededRandom(seed);
  try {
    await subject.start();
    const accounts = await Promise.all(sessions.map((clients, i) => createAccount(subject.port, `a${i}`, clients)));
    for (const account of accounts) await addApplication(account, subject.port);
    const world: World = { subject, accounts, counts: newCounts(), journal, unanswered: [] };
    for (let round = 1; round <= rounds; round += 1) {
      journal.note(`** round ${round}`);
      await playRound(world, random, allowance);
    }
    return world.counts;
  } catch (err) {
    const { message } = err as Error;
    const ids = message.match(/[0-9a-f]{8}-[0-9a-f-]{27}|\bf-\d+\b/g) ?? [];
    const told = journal.about(ids) || journal.text();
    const where = keep ? `, data kept in ${subject.dataDir}` : '';
    throw new Error(`FAULT_SEED=${seed} FAULT_SHAPE=${shape}${where}: ${message}\n${told}\n${subject.output()}`, { cause: err });
  } finally {
    if (keep) process.stderr.write(`${subject.dataDir}\n${journal.text()}\n`);
    await subject.remove({ keep });
  }
}

/** Work and faults at the same time; then, with all up again, what is promised is compared with what is there. */
async function playRound(world: World, random: SeededRandom, allowance: Allowance): Promise<void> {
  const { subject, accounts, counts } = world;
  const working = new AbortController();
  const watching = new AbortController();
  const actors = accounts.flatMap((account) =>
    Array.from({ length: account.sessions }, (_, i) => new Actor(world, account, i, new SeededRandom(random.below(2 ** 31)))),
  );
  // What fails ends the round.
  const watch = Promise.allSettled([watchLimits(world, allowance, watching.signal).finally(() => working.abort())]);
  const work = Promise.allSettled(
    actors.map(async (actor) => {
      await actor.work(working.signal).finally(() => working.abort());
    }),
  );
  try {
    const wasBroken = await breakThings(world, random, working.signal);
    working.abort();
    throwFirst(await work);
    // Its failure is told in the end.
    if (!wasBroken) return;
    await subject.allUp();
    await retryAll(world, random);
    await settle(world, viewOfDisk(subject.objectsDir));
    counts.rounds += 1;
  } finally {
    working.abort();
    watching.abort();
    await work;
    throwFirst(await watch);
  }
}

/**
 * Kills at random moments of the round, and starts again what nobody else does.
 *
 * @returns whether it came to the end of the round; the work has ended before that only if something failed
 */
async function breakThings({ subject, counts, journal }: World, random: SeededRandom, signal: AbortSignal): Promise<boolean> {
  const faults = 1 + random.below(FAULTS_PER_ROUND_MAX);
  const moments = Array.from({ length: faults }, () => random.below(ROUND_MS)).sort((a, b) => a - b);
  let passedMs = 0;
  for (const momentMs of [...moments, ROUND_MS]) {
    await pause(momentMs - passedMs, undefined, { signal }).catch(() => undefined);
    passedMs = momentMs;
    const possible = VICTIMS[subject.shape].filter((victim) => subject.mayKill(victim));
    if (signal.aborted) return false;
    if (momentMs === ROUND_MS || possible.length === 0) break;
    const victim: Victim = random.pick(possible);
    const wasThere = subject.kill(victim);
    journal.note(`** killed ${victim}${wasThere ? '' : ', which was not there'}`);
    if (wasThere) counts.kills[victim] = (counts.kills[victim] ?? 0) + 1;
    if (victim === 'launcher' || victim === 'everything') await subject.restart();
  }
  return true;
}

/** Sends again some of what was cut, lost or in doubt: of each account one after the other, as only one may run. */
async function retryAll(world: World, random: SeededRandom): Promise<void> {
  const { accounts, unanswered } = world;
  const all = unanswered.splice(0);
  const usable = ({ account, entry }: Unanswered) => account.ledger.application(entry.applicationId)?.state === 'there';
  const chosen = accounts.map((account) => {
    const own = all.filter((one) => one.account === account && usable(one));
    const first = random.below(Math.max(1, own.length));
    return own.slice(first, first + RETRIES_PER_ACCOUNT_MAX);
  });
  await Promise.all(
    chosen.map(async (own) => {
      for (const one of own) await retry(world, one);
    }),
  );
}

function throwFirst(results: readonly PromiseSettledResult<unknown>[]): void {
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}
