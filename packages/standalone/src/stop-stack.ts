/** Things to stop, in the reverse of the order in which they were started. */
export class StopStack {
  readonly #stops: Array<() => unknown> = [];
  #stopped: Promise<void> | undefined;

  push(stop: () => unknown): void {
    this.#stops.push(stop);
  }

  /**
   * Stops all, each even if one before it failed. Calling it again waits for the same end.
   *
   * @throws {AggregateError} of all that failed
   */
  stop(): Promise<void> {
    this.#stopped ??= this.#stopAll();
    return this.#stopped;
  }

  async #stopAll(): Promise<void> {
    const errors: unknown[] = [];
    for (let stop = this.#stops.pop(); stop; stop = this.#stops.pop()) {
      try {
        await stop();
      } catch (err) {
        errors.push(err);
      }
    }
    if (errors.length > 0) throw new AggregateError(errors, 'Not everything stopped cleanly');
  }
}
