import { ADMIT_ANSWERS } from './scripts.ts';

type Answer = readonly [count: number, resetMs: number, recalledCount: number, recalledResetMs: number];

type Settle = (answer: Answer | undefined) => void;

/** Most requests in one command, so that none holds Redis up for long. */
const BATCH_MAX = 64;

/**
 * Gathers what the requests of one turn of the event loop ask of the admission script and sends it as one command. Under load a request
 * then costs a share of a command, where a command of its own would cost more than all the rest of the gateway.
 */
export class AdmissionBatch {
  readonly #send: (keys: string[], args: Array<string | number>) => Promise<number[] | undefined>;
  #keys: string[] = [];
  #args: Array<string | number> = [];
  #waiting: Settle[] = [];

  /** @param send runs the script; undefined means that Redis can't be asked, and must never reject */
  constructor(send: (keys: string[], args: Array<string | number>) => Promise<number[] | undefined>) {
    this.#send = send;
  }

  /** Adds a request and answers its part of the script's answer, or undefined where Redis can't be asked. */
  add(keys: readonly string[], args: ReadonlyArray<string | number>): Promise<Answer | undefined> {
    if (this.#waiting.length === 0) setImmediate(() => this.#flush());
    this.#keys.push(...keys);
    this.#args.push(...args);
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#waiting.length === BATCH_MAX) this.#flush();
    });
  }

  #flush(): void {
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    const answers = this.#send(this.#keys, this.#args);
    this.#keys = [];
    this.#args = [];
    this.#waiting = [];
    void answers.then((numbers) => {
      for (const [request, settle] of waiting.entries()) settle(numbers && answerOf(numbers, request));
    });
  }
}

function answerOf(numbers: readonly number[], request: number): Answer {
  const start = request * ADMIT_ANSWERS;
  return numbers.slice(start, start + ADMIT_ANSWERS) as unknown as Answer;
}
