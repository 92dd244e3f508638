/**
 * A server could not be started: one sentence for the user. `detail` holds the server's last
 * lines.
 */
export class StartError extends Error {
  override readonly name = 'StartError';
  readonly detail: readonly string[];

  constructor(message: string, options: { detail?: readonly string[]; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.detail = options.detail ?? [];
  }
}
