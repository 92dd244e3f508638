import { startTcpProxy, type TcpProxy } from '@latchkey/testkit/tcp-proxy';
import type { Wiring } from '../fleet.ts';

/** Settings that name what a process calls. */
const CALLED = ['DATABASE_URL', 'REDIS_URL', 'APPS_URL', 'IDENTITY_URL', 'FILES_URL'] as const;

/** What one process speaks over. */
interface Link {
  /** Before its own port. */
  readonly inward: TcpProxy;
  readonly outward: readonly TcpProxy[];
}

/** The network of a fleet: every connection of every process goes over it, so that one of them can be cut off. */
export class Links {
  readonly #links = new Map<string, Link>();

  /** For `startFleet`: puts the network between a process and all that it speaks with. */
  readonly wire = async (wiring: Wiring): Promise<Wiring> => {
    const inward = await startTcpProxy(`http://127.0.0.1:${wiring.port}`);
    const env = { ...wiring.env };
    const outward: TcpProxy[] = [];
    for (const name of CALLED) {
      const url = env[name];
      if (url === undefined) continue;
      const proxy = await startTcpProxy(url);
      outward.push(proxy);
      // A URL without a path is written with a slash at its end.
      env[name] = proxy.url.replace(/\/$/, '');
    }
    this.#links.set(wiring.name, { inward, outward });
    return { ...wiring, env, port: Number(new URL(inward.url).port) };
  };

  /** Breaks a process's connections from those who call it, and refuses new ones; what it calls it still reaches. */
  async refuse(name: string): Promise<void> {
    await this.#of(name).inward.cut();
  }

  /** Passes nothing on any more, to it and from it, and tells nobody, as a network does that has come apart. */
  partition(name: string): void {
    for (const proxy of this.#proxiesOf(name)) proxy.freeze();
  }

  /** Passes everything on again. */
  async restore(name: string): Promise<void> {
    await Promise.all(this.#proxiesOf(name).map((proxy) => proxy.restore()));
  }

  async close(): Promise<void> {
    await Promise.all([...this.#links.keys()].flatMap((name) => this.#proxiesOf(name).map((proxy) => proxy.close())));
  }

  #of(name: string): Link {
    const link = this.#links.get(name);
    if (!link) throw new Error(`There is no ${name}`);
    return link;
  }

  #proxiesOf(name: string): TcpProxy[] {
    const { inward, outward } = this.#of(name);
    return [inward, ...outward];
  }
}
