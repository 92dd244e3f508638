import { ConnectionError, LatchkeyError } from '@latchkey/client';

export interface Explanation {
  readonly title: string;
  readonly advice: string;
  /** For the operator, who finds the request in the logs with it. */
  readonly requestId?: string | undefined;
  /** Time from which the service accepts another attempt, in milliseconds since 1970. */
  readonly retryAt?: number | undefined;
  /** Time of the attempt that the page makes by itself, if the error may pass. */
  readonly attemptAt?: number | undefined;
}

const EXPLANATIONS: Readonly<Record<string, readonly [title: string, advice: string]>> = {
  connection_failed: ['Latchkey is unreachable', 'Check your connection.'],
  page_not_loaded: ['This page could not be loaded', 'Latchkey may have been updated.'],
  timeout: ['Latchkey took too long to respond', 'Try again in a moment.'],
  unexpected_response: ['Something other than Latchkey responded', 'A proxy may be in the way. Try again, or ask the operator.'],
  changed_meanwhile: ['It was changed meanwhile', 'The page shows the new state. Try again if you still want to change it.'],
  upload_unfinished: ['Another file has begun to upload under this name', 'End that upload, or use another name.'],
  not_found: ['Not found', 'It may have been deleted, or belong to another account.'],
  insufficient_scope: ['You may not do this', 'Ask the owner of the account.'],
  application_forbidden: ['You may not use this application', 'Ask the owner of the account.'],
  csrf_invalid: ['The session has changed', 'Reload the page, then try again.'],
  mail_not_configured: ['This Latchkey sends no mail', 'Ask its operator to change your email or your password.'],
  INTERNAL_ERROR: ['Something went wrong on the server', 'Try again. If it stays, give the request id to the operator.'],
  VALIDATION_ERROR: ['Some inputs are not valid', 'Correct them, then try again.'],
};

/** Arrival time of each error: a countdown goes on when the page shows the error again. */
const arrivals = new WeakMap<LatchkeyError, number>();

const RETRY_SECONDS = 5;

/** True if the same call may succeed soon: no connection, a rate limit, a service that restarts. */
export const isTemporary = (error: unknown): error is LatchkeyError =>
  error instanceof ConnectionError || (error instanceof LatchkeyError && (error.status === 429 || error.status === 503));

function readTimes(error: LatchkeyError) {
  const { retryAfterSeconds } = error;
  const arrivedAt = arrivals.get(error) ?? Date.now();
  arrivals.set(error, arrivedAt);
  return {
    retryAt: retryAfterSeconds === undefined ? undefined : arrivedAt + retryAfterSeconds * 1_000,
    attemptAt: isTemporary(error) ? arrivedAt + (retryAfterSeconds ?? RETRY_SECONDS) * 1_000 : undefined,
  };
}

/** An error in words for people: what happened, and what to do. */
export function explainError(error: unknown): Explanation {
  if (!(error instanceof LatchkeyError)) {
    return { title: 'Something went wrong in this page', advice: 'Reload it. If that does not help, tell the operator.' };
  }
  const { code, status, details, requestId } = error;
  const facts = { requestId, ...readTimes(error) };
  if (code === 'rate_limit_reached')
    return { ...facts, title: 'Too many requests', advice: facts.retryAt === undefined ? 'Wait a moment.' : '' };
  if (status === 401) return { ...facts, title: 'You are signed out', advice: 'Sign in again.' };
  if (code === 'limit_exceeded') {
    const what = details.length > 0 ? 'Choose a smaller file' : 'Delete what you do not need';
    return { ...facts, title: error.message, advice: `${what}, or ask the operator for a higher limit.` };
  }
  if (status === 503 && code === 'INTERNAL_ERROR')
    return { ...facts, title: 'Latchkey is busy or restarting', advice: 'Try again in a few seconds.' };
  const known = Object.hasOwn(EXPLANATIONS, code) ? EXPLANATIONS[code] : undefined;
  const [title, advice] = known ?? [error.message, ''];
  return { ...facts, title, advice };
}

export const isChangedMeanwhile = (error: unknown): boolean =>
  error instanceof LatchkeyError && error.code === 'changed_meanwhile';
