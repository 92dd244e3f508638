/**
 * A server that could not be started, told in one sentence for the person at the terminal: what is wrong and
 * what to do. `detail` holds the server's own last lines, for a log.
 */
export class StartError extends Error {
  override readonly name = 'StartError';
  readonly detail: readonly string[];

  constructor(message: string, options: { detail?: readonly string[]; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.detail = options.detail ?? [];
  }
}
