import { setTimeout as pause } from 'node:timers/promises';
import { Api } from '../../api.ts';
import { createKey, type Key } from '../../caller.ts';
import type { Fleet } from '../fleet.ts';
import { Samples } from './samples.ts';
import { sendOnce } from './send.ts';
import type { World } from './world.ts';

const PATH = '/api/v1/panel/get-applications';
const PAUSE_MS = 300;
const REFUSED = '401 api_key_revoked';

/** Shows revoked keys to every gateway, before, during and after a fault, and revokes one more in the middle of it. */
export class RevocationWatch {
  readonly samples = new Samples();
  /** Where a revoked key was let in. */
  readonly flaws: string[] = [];
  readonly #world: World;
  readonly #before: Key;
  readonly #during: Key;
  readonly #stopping = new AbortController();
  readonly #done: Promise<unknown>;
  /** When the revocation was answered 200. */
  #revokedAt = Number.POSITIVE_INFINITY;

  private constructor(world: World, before: Key, during: Key) {
    this.#world = world;
    this.#before = before;
    this.#during = during;
    this.#done = Promise.all(world.fleet.gateways.map((gateway) => this.#watch(gateway)));
  }

  /** Begins with a key that is revoked, and one that both gateways know. */
  static async start(world: World): Promise<RevocationWatch> {
    const [before, during] = [await createKey(world.owner), await createKey(world.owner)];
    await world.owner.session.post(`/api/v1/panel/api-keys/${before.id}/revoke`);
    for (const { baseUrl } of world.fleet.gateways) await new Api(baseUrl, during.api.headers).get(PATH);
    return new RevocationWatch(world, before, during);
  }

  /** Revokes the other key too. Whether that succeeds depends on what is broken. */
  async revoke(): Promise<void> {
    const { baseUrl, headers } = this.#world.owner.session;
    const path = `/api/v1/panel/api-keys/${this.#during.id}/revoke`;
    const { outcome } = await sendOnce(this.samples, { kind: 'revocation', baseUrl, method: 'POST', path, headers });
    if (outcome === '200' && this.#revokedAt === Number.POSITIVE_INFINITY) this.#revokedAt = performance.now();
  }

  /** Ends it once all goes well: by then both keys are revoked for certain, and refused at every gateway. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#done;
    await this.revoke();
    for (const gateway of this.#world.fleet.gateways) {
      for (const key of [this.#before, this.#during]) {
        const outcome = await this.#ask(gateway, key);
        if (outcome !== REFUSED) this.flaws.push(`a revoked key was answered ${outcome} after the fault`);
      }
    }
  }

  async #watch(gateway: Fleet['api']): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const wasRevoked = this.#revokedAt < performance.now();
      const before = await this.#ask(gateway, this.#before);
      if (isLetIn(before)) this.flaws.push(`a key that had been revoked before was answered ${before}`);
      const during = await this.#ask(gateway, this.#during);
      if (wasRevoked && isLetIn(during)) this.flaws.push(`a key that was revoked meanwhile was answered ${during}`);
      await pause(PAUSE_MS, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
    }
  }

  async #ask({ baseUrl }: Fleet['api'], { api }: Key): Promise<string> {
    const { outcome } = await sendOnce(this.samples, {
      kind: 'revocation',
      baseUrl,
      method: 'GET',
      path: PATH,
      headers: api.headers,
    });
    return outcome;
  }
}

/** Neither refused, nor without an answer. */
function isLetIn(outcome: string): boolean {
  return outcome !== REFUSED && !outcome.startsWith('5') && !outcome.startsWith('lost');
}
