import { eventually } from '@latchkey/testkit/eventually';
import { SeededRandom } from '../client/random.ts';
import { type Account, createAccount } from './expected-state.ts';
import { describeOutcome, type FaultRequest, isLost, type Outcome, send, Violation } from './request.ts';
import type { Target } from './target.ts';

/** Requests by how often a load driver sends them, relative to the others. */
export const STEPS = {
  upload: 46,
  rename: 6,
  delete: 12,
  application: 2,
  read: 14,
  write: 10,
  'sign-in': 3,
  avatar: 4,
};

export type Kind = keyof typeof STEPS;
export const KINDS = Object.keys(STEPS) as Kind[];

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
export const SESSIONS = [1, 1, 2, 4];
const LISTENERS = [20, 2, 2, 2];
export const START_MS_MAX = 60_000;
const JOURNAL_LINES_MAX = 2_000;

export interface SendRules {
  readonly refusals?: readonly string[];
  readonly mayBeMissing?: () => boolean;
  readonly baseUrl?: string;
}

/** Accounts of a target, the requests of their clients, and a journal. */
export class Workload {
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
   * @throws {Violation} on any other rejection
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
    // Without its balancer, a gateway that restarts refuses connections.
    const mayBeLost = sent.cut !== undefined || baseUrl !== this.target.baseUrl;
    const failed = isLost(outcome) ? !mayBeLost : outcome.status >= 500;
    this.samples.push({ kind, startedAt, endedAt: performance.now(), outcome: text, failed });
    this.note(`${name} ${kind} ${JSON.stringify(sent.query ?? {})}${sent.cut ? ` cut after ${sent.cut.after}` : ''}: ${text}`);
    const isRefusal = !isLost(outcome) && outcome.status >= 400 && outcome.status < 500;
    const mayBe = isRefusal && (refusals.includes(outcome.code) || (outcome.status === 404 && mayBeMissing()));
    if (isRefusal && !mayBe) throw new Violation(`${name}: ${kind} ${JSON.stringify(sent.query)} had the response ${text}`);
    return outcome;
  }

  async start(): Promise<void> {
    for (const [i] of SESSIONS.entries()) this.accounts.push(await createAccount(this.target, `a${i}`, LISTENERS[i] ?? 0));
    await eventually(() => this.areListenersConnected(), { timeoutMs: START_MS_MAX });
  }

  async stop(): Promise<void> {
    await Promise.all(this.accounts.flatMap(({ listeners }) => listeners.map((listener) => listener.stop())));
    await this.target.stop();
  }

  areListenersConnected(): boolean {
    return this.accounts.every(({ listeners }) => listeners.every(({ isConnected }) => isConnected));
  }
}
