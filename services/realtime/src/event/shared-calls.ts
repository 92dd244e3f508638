/**
 * Makes concurrent calls with one key a single call. A call that comes while one is under way
 * shares the next, so no response is older than its request.
 */
export class SharedCalls<T> {
  readonly #current = new Map<string, Promise<T>>();
  readonly #next = new Map<string, Promise<T>>();

  ask(key: string, call: () => Promise<T>): Promise<T> {
    const current = this.#current.get(key);
    if (!current) return this.#begin(key, call);
    const shared = this.#next.get(key);
    if (shared) return shared;
    const begin = () => {
      this.#next.delete(key);
      return this.#begin(key, call);
    };
    const next = current.then(begin, begin);
    this.#next.set(key, next);
    return next;
  }

  #begin(key: string, call: () => Promise<T>): Promise<T> {
    const promise = call();
    this.#current.set(key, promise);
    const end = () => {
      if (this.#current.get(key) === promise) this.#current.delete(key);
    };
    promise.then(end, end);
    return promise;
  }
}
