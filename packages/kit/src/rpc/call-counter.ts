/** Knows how many unary calls are under way, so that a server can stop when the last has ended. */
export class CallCounter {
  #underWay = 0;
  #onIdle: (() => void) | undefined;

  enter(): void {
    this.#underWay += 1;
  }

  leave(): void {
    this.#underWay -= 1;
    if (this.#underWay === 0) this.#onIdle?.();
  }

  /** Resolves once no call is under way. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle = resolve;
      if (this.#underWay === 0) resolve();
    });
  }
}
