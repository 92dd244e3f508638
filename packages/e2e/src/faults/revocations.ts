import { setTimeout as pause } from 'node:timers/promises';
import { Api } from '../client/api.ts';
import { createKey, type Key } from '../client/caller.ts';
import type { Account } from './expected-state.ts';
import { describeOutcome } from './request.ts';
import type { Workload } from './workload.ts';

const PATH = '/api/v1/panel/get-applications';
const PAUSE_MS = 300;
const CODES = ['api_key_revoked'];
const REFUSED = '401 api_key_revoked';

/** Sends revoked keys to every gateway all the time, and revokes one during the fault (R5). */
export class RevocationWatch {
  /** Requests that accepted a revoked key. */
  readonly flaws: string[] = [];
  readonly #workload: Workload;
  readonly #before: Key;
  readonly #during: Key;
  readonly #stopping = new AbortController();
  readonly #done: Promise<unknown>;
  #revokedAt = Number.POSITIVE_INFINITY;

  private constructor(workload: Workload, before: Key, during: Key) {
    this.#workload = workload;
    this.#before = before;
    this.#during = during;
    this.#done = Promise.all(workload.target.gateways.map((gateway) => this.#watch(gateway)));
  }

  static async start(workload: Workload): Promise<RevocationWatch> {
    const { owner } = workload.accounts[0] as Account;
    const [before, during] = [await createKey(owner), await createKey(owner)];
    await owner.session.post(`/api/v1/panel/api-keys/${before.id}/revoke`);
    for (const gateway of workload.target.gateways) await new Api(gateway, during.api.headers).get(PATH);
    return new RevocationWatch(workload, before, during);
  }

  /** Revokes the other key, which the fault may make fail. */
  async revoke(): Promise<void> {
    const { headers } = (this.#workload.accounts[0] as Account).owner.session;
    const path = `/api/v1/panel/api-keys/${this.#during.id}/revoke`;
    const outcome = await this.#workload.send('revocation', 'owner', { method: 'POST', path, headers });
    if (describeOutcome(outcome) === '200') this.#revokedAt = Math.min(this.#revokedAt, performance.now());
  }

  /** Ends it once all goes well: both keys are revoked then, and rejected at every gateway. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#done;
    await this.revoke();
    for (const gateway of this.#workload.target.gateways) {
      for (const key of [this.#before, this.#during]) await this.#show(gateway, key, true);
    }
  }

  async #watch(gateway: string): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      await this.#show(gateway, this.#before);
      if (this.#revokedAt < performance.now()) await this.#show(gateway, this.#during);
      await pause(PAUSE_MS, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
    }
  }

  async #show(gateway: string, { api, id }: Key, mustAnswer = false): Promise<void> {
    const request = { method: 'GET', path: PATH, headers: api.headers };
    const text = describeOutcome(
      await this.#workload.send('revocation', gateway, request, { refusals: CODES, baseUrl: gateway }),
    );
    if (text === '200' || (mustAnswer && text !== REFUSED)) this.flaws.push(`the revoked key ${id} had the response ${text}`);
  }
}
