import { errors } from '../errors.ts';

/** How many sockets there may be. */
export interface PlaceLimits {
  readonly total: number;
  readonly perNetwork: number;
  readonly perApplication: number;
}

/** Seconds after which a client that found no place may ask again. */
const RETRY_AFTER_SECONDS = '10';

/** The places that a node has for sockets, those that are being opened included. */
export class Places {
  readonly #limits: PlaceLimits;
  readonly #byNetwork = new Map<string, number>();
  readonly #byApplication = new Map<string, number>();
  #taken = 0;

  constructor(limits: PlaceLimits) {
    this.#limits = limits;
  }

  /** Takes a place for a client's network, and returns what gives it back. Throws `node_full`, `too_many_sockets_of_address`. */
  take(network: string): () => void {
    if (this.#taken >= this.#limits.total) throw errors.node_full({ retryAfterSeconds: RETRY_AFTER_SECONDS });
    if (!add(this.#byNetwork, network, this.#limits.perNetwork)) {
      throw errors.too_many_sockets_of_address(denial('sockets-per-address', this.#limits.perNetwork));
    }
    this.#taken += 1;
    return once(() => {
      this.#taken -= 1;
      remove(this.#byNetwork, network);
    });
  }

  /** The same for an application, once it is known. Throws `too_many_sockets_of_application`. */
  takeOf(applicationId: string): () => void {
    if (!add(this.#byApplication, applicationId, this.#limits.perApplication)) {
      throw errors.too_many_sockets_of_application(denial('sockets-per-application', this.#limits.perApplication));
    }
    return once(() => remove(this.#byApplication, applicationId));
  }
}

function denial(policy: string, limit: number) {
  return { policy, limit: String(limit), windowSeconds: '0', remaining: '0', retryAfterSeconds: RETRY_AFTER_SECONDS };
}

function add(counts: Map<string, number>, key: string, max: number): boolean {
  const count = counts.get(key) ?? 0;
  if (count >= max) return false;
  counts.set(key, count + 1);
  return true;
}

function remove(counts: Map<string, number>, key: string): void {
  const count = counts.get(key) ?? 0;
  if (count > 1) counts.set(key, count - 1);
  else counts.delete(key);
}

function once(action: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    action();
  };
}
