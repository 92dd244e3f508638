/** What the command exits with. Documented in docs/cli.md. */
export const EXIT = { failed: 1, usage: 2, forbidden: 3, notFound: 4, rateLimited: 5, unreachable: 6 } as const;

export type Outcome = keyof typeof EXIT;

/** An error for the user: one line that says what happened and what to do next. */
export class CliError extends Error {
  readonly outcome: Outcome;

  constructor(outcome: Outcome, message: string) {
    super(message);
    this.outcome = outcome;
  }
}

/** A prompt is needed, but there is no terminal. */
export function missingOption(option: string, what: string): CliError {
  return new CliError('usage', `There is no terminal to ask for ${what}. Add ${option}.`);
}
