import { ConnectionError, LatchkeyError } from '@latchkey/client';

/** Exit codes. Documented in docs/cli.md. */
export const EXIT = { failed: 1, usage: 2, forbidden: 3, notFound: 4, rateLimited: 5, unreachable: 6, drift: 7 } as const;

export type Outcome = keyof typeof EXIT;

/** An error for the user: one line that says what happened and what to do next. */
export class CliError extends Error {
  readonly outcome: Outcome;

  constructor(outcome: Outcome, message: string) {
    super(message);
    this.outcome = outcome;
  }
}

export function missingOption(option: string, what: string): CliError {
  return new CliError('usage', `There is no terminal to ask for ${what}. Add ${option}.`);
}

const NEXT_STEPS: Readonly<Record<string, string>> = {
  api_key_invalid: 'Run "latchkey login", or check LATCHKEY_KEY.',
  api_key_expired: 'Run "latchkey login" for a new key.',
  api_key_revoked: 'Run "latchkey login" for a new key.',
  insufficient_scope: 'Widen the key with "latchkey api-keys edit", or use another one.',
  application_forbidden: 'Widen the key with "latchkey api-keys edit", or use another one.',
  account_exists: 'Sign in without --sign-up, or choose other names.',
  sign_up_closed: 'Ask the operator for an account.',
  invalid_file: 'Choose another file.',
  file_name_taken: 'Choose another name, or upload with --replace.',
  overlap_active: 'Add --end-previous, or run "latchkey keys end-overlap" first.',
  upload_unfinished: 'Run "latchkey uploads end", or choose another name.',
  limit_exceeded: 'Run "latchkey limits", then delete something or ask the operator.',
  file_too_large: 'Choose a smaller file, or ask the operator for a higher limit.',
  upload_timeout: 'Use a faster connection, or ask the operator to raise UPLOAD_DEADLINE_SECONDS.',
  changed_meanwhile: 'Run the command again, which then begins with the new state.',
  not_found: 'Check the id, the key and the URL.',
  socket_key_rejected: 'Check LATCHKEY_SOCKET_KEY.',
  live_events_rejected: 'Set --url.',
};

/** Turns any error into one for the user. Those of programming are passed on. */
export function toCliError(err: unknown): CliError {
  if (err instanceof CliError) return err;
  if (err instanceof ConnectionError)
    return new CliError('unreachable', sentences(err.message, 'Check the URL, and that the server runs.'));
  if (err instanceof Error && 'syscall' in err) return new CliError('failed', sentences(err.message, 'Check the path.'));
  if (!(err instanceof LatchkeyError)) throw err;
  const { code, status, details, message, retryAfterSeconds } = err;
  if (code === 'VALIDATION_ERROR' || code === 'bad_request') {
    const rules = details.map(({ path, message: rule }) =>
      // A rule of the whole request is a sentence.
      path === 'request' ? rule.replace(/[.]$/, '') : `${path.replace(/^(body|query|params|header)\./, '')} ${rule}`,
    );
    return new CliError(
      'usage',
      sentences(rules.length > 0 ? `Rejected: ${rules.join('; ')}` : message, 'Correct it, or see --help.'),
    );
  }
  if (status === 429) {
    const next = retryAfterSeconds === undefined ? 'Try again later.' : `Try again in ${retryAfterSeconds} s.`;
    return new CliError(toOutcome(status), sentences(message, next));
  }
  // Details name a file that is too large by itself. Any server can send any code, such as
  // `constructor`.
  const advice = code === 'limit_exceeded' && details.length > 0 ? 'file_too_large' : code;
  const next = Object.hasOwn(NEXT_STEPS, advice) ? NEXT_STEPS[advice] : undefined;
  // The rest of a response is for programs, such as which header to send.
  const [happened = ''] = next === undefined ? [message] : message.split(/(?<=[.]) /);
  return new CliError(toOutcome(status, code), sentences(happened, next ?? 'Run it again with --verbose for the response.'));
}

/** @param code of the error envelope, if there is one */
export function toOutcome(status: number, code?: string): Outcome {
  if (status === 429) return 'rateLimited';
  if (status === 401 || (status === 403 && code !== 'limit_exceeded')) return 'forbidden';
  if (status === 404) return 'notFound';
  // Proxies respond with these when the server behind them is down.
  return status === 502 || status === 503 || status === 504 ? 'unreachable' : 'failed';
}

function sentences(first: string, second: string): string {
  return `${first.trim().replace(/[.!]?$/, '.')} ${second}`;
}
