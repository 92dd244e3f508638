/** What came of the requests of one kind. */
export interface Tally {
  readonly requests: number;
  /** Those that had any other end than their success, in words. */
  readonly failed: readonly string[];
}

/** Keeps book of requests by their kind. */
export class Book {
  readonly #underWay = new Map<string, number>();
  #tallies = new Map<string, { requests: number; failed: string[] }>();

  /** Requests of a kind that have begun and not ended. */
  underWay(kind: string): number {
    return this.#underWay.get(kind) ?? 0;
  }

  begin(kind: string): void {
    this.#underWay.set(kind, this.underWay(kind) + 1);
  }

  /** @param failure how it ended where that was no success */
  end(kind: string, failure: string | undefined): void {
    this.#underWay.set(kind, this.underWay(kind) - 1);
    const tally = this.#tallies.get(kind) ?? { requests: 0, failed: [] };
    tally.requests += 1;
    if (failure !== undefined) tally.failed.push(failure);
    this.#tallies.set(kind, tally);
  }

  /** Gives what has ended since it was asked for last. */
  turnPage(): ReadonlyMap<string, Tally> {
    const page = this.#tallies;
    this.#tallies = new Map();
    return page;
  }
}
