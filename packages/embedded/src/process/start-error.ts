/** A failed start: one sentence for the user. `detail` holds the last lines of the server. */
export class StartError extends Error {
  override readonly name = 'StartError';
  readonly detail: readonly string[];

  constructor(message: string, options: { detail?: readonly string[]; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.detail = options.detail ?? [];
  }
}
