import { type Answer, checkAnswer } from '../api.ts';

/** No answer came to a request. */
export interface Lost {
  readonly lost: string;
  /** Whether the server can have had all of the request: otherwise nothing may have come of it. */
  readonly wasWhole: boolean;
}

/** What became of a request: its answer, whose form is checked, or none. */
export type Outcome = Answer | Lost;

/** Something that was promised and did not hold. */
export class Violation extends Error {
  override readonly name = 'Violation';
}

/** Longest time that an answer or its absence may take, in milliseconds; errors are promised within 5 s, on a machine that has time. */
const CALL_MS_MAX = 20_000;

export function isLost(outcome: Outcome): outcome is Lost {
  return 'lost' in outcome;
}

/** Whether a request may have had its effect or not: there was no answer to all of it, or the server says that something it needs is down. */
export function isInDoubt(outcome: Outcome): boolean {
  return isLost(outcome) ? outcome.wasWhole : outcome.status >= 500;
}

/** Says an outcome in a few words. */
export function describeOutcome(outcome: Outcome): string {
  if (isLost(outcome)) return `lost (${outcome.lost}${outcome.wasWhole ? '' : ', not all sent'})`;
  return `${outcome.status} ${outcome.code}`.trim();
}

/** A request with a body in JSON or none. */
export interface Call {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Sends a request to an instance that may go away.
 *
 * @throws {Violation} when nothing comes back for long, not even the end of the connection
 */
export async function call(port: number, { method, path, query, body, headers }: Call): Promise<Outcome> {
  const what = `${method} ${path}`;
  const search = query ? `?${new URLSearchParams(query)}` : '';
  const init = {
    method,
    headers: { ...(body && { 'content-type': 'application/json' }), ...headers },
    body: body ? JSON.stringify(body) : null,
    signal: AbortSignal.timeout(CALL_MS_MAX),
  };
  let answer: { status: number; headers: Headers; text: string };
  try {
    const response = await fetch(`http://127.0.0.1:${port}${path}${search}`, init);
    answer = { status: response.status, headers: response.headers, text: await response.text() };
  } catch (err) {
    if (init.signal.aborted) throw new Violation(`${what} was not answered within ${CALL_MS_MAX} ms`);
    const { code = 'no answer' } = ((err as Error).cause ?? {}) as { code?: string };
    return { lost: code, wasWhole: code !== 'ECONNREFUSED' };
  }
  return checkAnswer(what, answer, true);
}
