import { setTimeout as pause } from 'node:timers/promises';
import type { Answer } from '../client/api.ts';
import type { SeededRandom } from '../client/random.ts';
import { type Cut, describeOutcome, type FaultRequest, isLost, type Outcome, send, Violation } from './request.ts';

/** Longest time until a request has its response, whatever is killed meanwhile. */
export const RESPONSE_MS_MAX = 90_000;
const RETRY_MS_MAX = 150;
/** A service responds after some 5 ms: a client goes away before, during and after the effect. */
const LEAVE_MS_MAX = 20;

/** Figures of a run. */
export class Tally {
  changes = 0;
  requests = 0;
  replays = 0;
  slowestMs = 0;
}

/** Sends requests to a server that may go away, each until it has a response. */
export type Repeater = ReturnType<typeof createRepeater>;

export function createRepeater(baseUrl: string, random: SeededRandom, tally: Tally) {
  let serial = 0;

  /** Sends a request once. A response before all of it was sent counts as lost. */
  async function attempt(sent: FaultRequest, cut?: Cut): Promise<Outcome> {
    tally.requests += 1;
    const outcome = await send(baseUrl, { ...sent, cut });
    const isPart = cut !== undefined && !isLost(outcome) && (outcome.status === 400 || outcome.status === 408);
    return isPart ? { lost: 'cut', wasWhole: false } : outcome;
  }

  const wait = () => pause(random.below(RETRY_MS_MAX));

  /** Has a client go away after a number of bytes. */
  const drawCut = (after: number): Cut => ({
    ...{ after, by: random.pick(['FIN', 'RST'] as const), pauseMs: random.below(LEAVE_MS_MAX) },
  });

  /** One client in four goes away. */
  function draw({ body }: FaultRequest): Cut | undefined {
    if (!random.oneIn(4)) return undefined;
    const byteSize = body instanceof Buffer ? body.length : body === undefined ? 0 : JSON.stringify(body).length;
    return drawCut(random.oneIn(4) ? random.below(byteSize + 1) : byteSize);
  }

  /**
   * Sends a change with a new idempotency key until it has a response, and sometimes again or twice
   * concurrently: it has one response.
   *
   * @throws {Violation}
   */
  async function change(given: FaultRequest): Promise<Answer> {
    const startedAt = performance.now();
    serial += 1;
    const sent = { ...given, headers: { ...given.headers, 'idempotency-key': `change ${serial}` } };
    const what = `${sent.method} ${sent.path} ${JSON.stringify(sent.query ?? {})}`;
    let repeats = random.oneIn(4) ? 1 : 0;
    let first: Answer | undefined;
    while (!first || repeats > 0) {
      if (first) repeats -= 1;
      const count = random.oneIn(8) ? 2 : 1;
      const outcomes = await Promise.all(Array.from({ length: count }, () => attempt(sent, draw(sent))));
      for (const outcome of outcomes.filter((one) => !isPassing(one)) as Answer[]) {
        if (!outcome.success) throw new Violation(`${what} had the response ${describeOutcome(outcome)} ${outcome.text}`);
        const isReplayed = outcome.headers.get('idempotency-replayed') === 'true';
        if (isReplayed) tally.replays += 1;
        else if (first && count === 1) throw new Violation(`${what} had its effect again`);
        const isSame = first?.text === outcome.text && first.headers.get('location') === outcome.headers.get('location');
        if (first && !isSame) throw new Violation(`${what} had two responses: ${first.text} and ${outcome.text}`);
        first ??= outcome;
      }
      if (first) continue;
      if (performance.now() - startedAt > RESPONSE_MS_MAX)
        throw new Violation(`${what} has no response: ${outcomes.map(describeOutcome)}`);
      await wait();
    }
    tally.changes += 1;
    tally.slowestMs = Math.max(tally.slowestMs, performance.now() - startedAt);
    return first;
  }

  return { attempt, change, drawCut, wait };
}

/** True if the same request may succeed later: nothing is known of its effect. */
export const isPassing = (outcome: Outcome): boolean =>
  isLost(outcome) || outcome.status >= 500 || ['idempotency_in_progress', 'rate_limit_reached'].includes(outcome.code);
