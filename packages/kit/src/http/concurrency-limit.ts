import type { Server, Socket } from 'node:net';
import type { DomainError } from '../errors/errors.ts';
import { canonicalIp, networkOf, type ProxyTrust } from './client-ip.ts';

/** Limits the concurrent use of each key, such as a network, so that it does not block others. */
export class ConcurrencyLimit {
  readonly max: number;
  readonly #counts = new Map<string, number>();

  constructor(max: number) {
    this.max = max;
  }

  count(key = ''): number {
    return this.#counts.get(key) ?? 0;
  }

  isReached(key = ''): boolean {
    return this.count(key) >= this.max;
  }

  /** Counts a use of a key. Returns what ends it, or undefined if the limit is reached. */
  acquire(key = ''): (() => void) | undefined {
    if (this.isReached(key)) return undefined;
    this.#counts.set(key, this.count(key) + 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      const count = this.count(key) - 1;
      if (count > 0) this.#counts.set(key, count);
      else this.#counts.delete(key);
    };
  }
}

type Bound = readonly [limit: ConcurrencyLimit, key: string, error: () => DomainError];

/** Acquires every limit; returns their release. Throws the error of the first that is reached. */
export function acquireAll(...bounds: readonly Bound[]): () => void {
  const reached = bounds.find(([limit, key]) => limit.isReached(key));
  if (reached) throw reached[2]();
  const releases = bounds.map(([limit, key]) => limit.acquire(key));
  return () => {
    for (const release of releases) release?.();
  };
}

export interface ConnectionLimits {
  readonly total: number;
  /** Of one network. Trusted proxies are exempt: they connect for many clients. */
  readonly perNetwork: number;
  readonly trust?: ProxyTrust;
}

/** Closes connections over the limits: the silent ones of one network must not block others. */
export function limitConnections(server: Server, { total, perNetwork, trust }: ConnectionLimits): void {
  server.maxConnections = total;
  const limit = new ConcurrencyLimit(perNetwork);
  server.on('connection', (socket: Socket) => {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined || trust?.(remoteAddress, 0)) return;
    const release = limit.acquire(networkOf(canonicalIp(remoteAddress)));
    if (release) socket.once('close', release);
    else socket.destroy();
  });
}
