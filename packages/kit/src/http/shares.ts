/** Limits of concurrent use. */
export interface ShareBounds {
  readonly total: number;
  /** Of one network. */
  readonly perNetwork: number;
}

/** A concurrency limit of which one network has a share at most, so that it does not keep others out. */
export class Shares {
  readonly #bounds: ShareBounds;
  readonly #counts = new Map<string, number>();
  #taken = 0;

  constructor(bounds: ShareBounds) {
    this.#bounds = bounds;
  }

  /**
   * Takes a slot for a network, as `networkOf` names it.
   *
   * @returns what gives the slot back, safe to call twice; undefined if none is left
   */
  take(network: string): (() => void) | undefined {
    const count = this.#counts.get(network) ?? 0;
    if (this.#taken >= this.#bounds.total || count >= this.#bounds.perNetwork) return undefined;
    this.#counts.set(network, count + 1);
    this.#taken += 1;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#taken -= 1;
      const left = (this.#counts.get(network) ?? 0) - 1;
      if (left > 0) this.#counts.set(network, left);
      else this.#counts.delete(network);
    };
  }
}
