/**
 * Makes calls for the same thing at the same time one call. Nobody gets the answer to a question that was asked before theirs: whoever comes while a call is
 * under way shares the next one.
 */
export class SharedCalls<T> {
  readonly #underWay = new Map<string, Promise<T>>();
  readonly #next = new Map<string, Promise<T>>();

  /** @param key what is asked for; the first of those that share a call makes it */
  ask(key: string, call: () => Promise<T>): Promise<T> {
    const underWay = this.#underWay.get(key);
    if (!underWay) return this.#begin(key, call);
    const shared = this.#next.get(key);
    if (shared) return shared;
    const begin = () => {
      this.#next.delete(key);
      return this.#begin(key, call);
    };
    const next = underWay.then(begin, begin);
    this.#next.set(key, next);
    return next;
  }

  #begin(key: string, call: () => Promise<T>): Promise<T> {
    const promise = call();
    this.#underWay.set(key, promise);
    const end = () => {
      if (this.#underWay.get(key) === promise) this.#underWay.delete(key);
    };
    promise.then(end, end);
    return promise;
  }
}
