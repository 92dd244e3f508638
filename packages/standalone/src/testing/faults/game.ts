import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '@latchkey/testkit/eventually';
import { SeededRandom } from '../random.ts';
import { Actor, KINDS, type Kind } from './actor.ts';
import { findBreaches, retryUnanswered, settle, watchUsage } from './checker.ts';
import { type Account, createAccount } from './ledger.ts';
import { describeOutcome, type FaultRequest, isLost, type Outcome, send, Violation } from './request.ts';
import { RevocationWatch } from './revocations.ts';
import type { Fault, Target } from './target.ts';

/** One request and what came of it. */
export interface Sample {
  readonly kind: Kind | 'revocation';
  readonly startedAt: number;
  readonly endedAt: number;
  /** `200`, status and code, or how it was lost. */
  readonly outcome: string;
  /** Lost or a server error, and not by its client's doing. */
  readonly failed: boolean;
}

/** Clients at work at the same time, by account. */
const SESSIONS = [1, 1, 2, 4];
const LISTENERS = [20, 2, 2, 2];
const START_MS_MAX = 60_000;
/** How long all must go well before the requests stop. */
const WELL_MS = 2_000;
const JOURNAL_LINES_MAX = 2_000;

/** A game: accounts whose clients send requests while faults break one thing after the other. */
export class Game {
  readonly target: Target;
  readonly random: SeededRandom;
  readonly accounts: Account[] = [];
  samples: Sample[] = [];
  #journal: string[] = [];

  constructor(target: Target, seed: number) {
    this.target = target;
    this.random = new SeededRandom(seed);
  }

  note(line: string): void {
    this.#journal.push(`${(performance.now() / 1_000).toFixed(3)} ${line}`);
    if (this.#journal.length > JOURNAL_LINES_MAX) this.#journal.shift();
  }

  /** The journal's lines about some files or applications, and about faults. */
  journal(message: string): string {
    const words = message.match(/[0-9a-f]{8}-[0-9a-f-]{27}|\bf-\d+\b/g) ?? [];
    return this.#journal
      .filter((line) => words.length === 0 || line.includes('**') || words.some((word) => line.includes(word)))
      .join('\n');
  }

  /**
   * @param refusals codes of client errors that may be the response
   * @param mayBeMissing whether a 404 may be, asked after the response
   * @throws {Violation} on any other refusal
   */
  async send(
    kind: Sample['kind'],
    name: string,
    sent: FaultRequest,
    { refusals = [], mayBeMissing = () => false, baseUrl = this.target.baseUrl }: SendRules = {},
  ): Promise<Outcome> {
    const startedAt = performance.now();
    const outcome = await send(baseUrl, sent);
    const text = describeOutcome(outcome);
    const failed = isLost(outcome) ? sent.cut === undefined : outcome.status >= 500;
    this.samples.push({ kind, startedAt, endedAt: performance.now(), outcome: text, failed });
    this.note(`${name} ${kind} ${JSON.stringify(sent.query ?? {})}${sent.cut ? ` cut after ${sent.cut.after}` : ''}: ${text}`);
    const isRefusal = !isLost(outcome) && outcome.status >= 400 && outcome.status < 500;
    const mayBe = isRefusal && (refusals.includes(outcome.code) || (outcome.status === 404 && mayBeMissing()));
    if (isRefusal && !mayBe) throw new Violation(`${name}: ${kind} ${JSON.stringify(sent.query)} had the response ${text}`);
    return outcome;
  }

  /** Records a request of another kind by its status, or its error. */
  async record(kind: Kind, name: string, run: () => Promise<string>): Promise<void> {
    const startedAt = performance.now();
    const outcome = await run().catch((err: Error) => `lost ${String(err.cause ?? err)}`);
    this.samples.push({ kind, startedAt, endedAt: performance.now(), outcome, failed: outcome !== '200' });
    this.note(`${name} ${kind}: ${outcome}`);
  }

  async start(): Promise<void> {
    for (const [i] of SESSIONS.entries()) this.accounts.push(await createAccount(this.target, `a${i}`, LISTENERS[i] ?? 0));
    await eventually(() => this.#areListenersConnected(), { timeoutMs: START_MS_MAX });
  }

  async stop(): Promise<void> {
    await Promise.all(this.accounts.flatMap(({ listeners }) => listeners.map((listener) => listener.stop())));
    await this.target.stop();
  }

  /**
   * Breaks something under load, repairs it, waits until all goes well, and checks the promises.
   *
   * @returns what was promised and did not hold
   */
  async play(fault: Fault, holdMs: number): Promise<string[]> {
    this.note(`** ${fault.name}`);
    this.samples = [];
    const working = new AbortController();
    const watching = new AbortController();
    const revocations = await RevocationWatch.start(this);
    const actors = this.accounts.flatMap((account, i) =>
      Array.from({ length: SESSIONS[i] ?? 1 }, () => new Actor(this, account, new SeededRandom(this.random.below(2 ** 31)))),
    );
    // The first failure ends the round.
    const guarded = (work: Promise<void>) => work.finally(() => working.abort());
    const work = Promise.allSettled(actors.map((actor) => guarded(actor.work(working.signal))));
    const usage = Promise.allSettled([guarded(watchUsage(this, watching.signal))]);
    const times = await this.#breakAndRepair(fault, holdMs, revocations, working.signal).finally(() => working.abort());
    const ended = await work;
    await revocations.stop();
    throwFirst(ended);
    await retryUnanswered(this);
    watching.abort();
    throwFirst(await usage);
    const losses = await settle(this);
    return [...times.unsettled, ...revocations.flaws, ...findBreaches(this, fault, times), ...losses];
  }

  async #breakAndRepair(fault: Fault, holdMs: number, revocations: RevocationWatch, signal: AbortSignal) {
    const startedAt = performance.now();
    await this.#whenWell(startedAt, signal).catch((err: Error) => {
      throw new Violation(`Not all went well before: ${fault.name}: ${err.message}`);
    });
    // At a moment that the seed decides.
    await pause(this.random.below(500));
    const brokenAt = performance.now();
    await fault.breakIt();
    await pause(holdMs / 2);
    const revoking = revocations.revoke();
    await pause(holdMs / 2);
    await fault.repair();
    const repairedAt = performance.now();
    this.note(`** repaired: ${fault.name}`);
    await revoking;
    const unsettled = await this.#whenWell(repairedAt, signal).then(
      () => [],
      (err: Error) => [`not all goes well again: ${err.message}`],
    );
    return { brokenAt, repairedAt, unsettled };
  }

  /** Waits until all is ready, every kind of request succeeded since, and none failed lately. */
  async #whenWell(since: number, signal: AbortSignal): Promise<void> {
    const kinds = KINDS.filter((kind) => kind !== 'download' && kind !== 'application');
    const check = async () => {
      if (signal.aborted) return true;
      const recent = this.samples.filter(({ startedAt }) => startedAt > since);
      const failed = recent.filter((sample) => sample.failed && sample.endedAt > performance.now() - WELL_MS);
      const missing = kinds.filter((kind) => !recent.some((sample) => sample.kind === kind && sample.outcome === '200'));
      if (failed.length > 0) throw new Error(failed.map(({ kind, outcome }) => `${kind} ${outcome}`).join(', '));
      if (missing.length > 0) throw new Error(`no successful ${missing}`);
      if (performance.now() - since < WELL_MS || !this.#areListenersConnected()) return false;
      return this.target.isReady();
    };
    await eventually(check, { timeoutMs: START_MS_MAX, intervalMs: 50 });
  }

  #areListenersConnected(): boolean {
    return this.accounts.every(({ listeners }) => listeners.every(({ isConnected }) => isConnected));
  }
}

export interface SendRules {
  readonly refusals?: readonly string[];
  readonly mayBeMissing?: () => boolean;
  readonly baseUrl?: string;
}

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
      results[fault.name] = await game.play(fault, holdMs);
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

function throwFirst(results: readonly PromiseSettledResult<unknown>[]): void {
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}
