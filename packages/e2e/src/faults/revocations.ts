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
export type RevocationWatch = Awaited<ReturnType<typeof watchRevocations>>;

export async function watchRevocations(workload: Workload) {
  const { gateways } = workload.target;
  const { owner } = workload.accounts[0] as Account;
  const [before, during] = [await createKey(owner), await createKey(owner)];
  /** Requests that accepted a revoked key. */
  const flaws: string[] = [];
  const stopping = new AbortController();
  let revokedAt = Number.POSITIVE_INFINITY;
  await owner.session.post(`/api/v1/panel/api-keys/${before.id}/revoke`);
  for (const gateway of gateways) await new Api(gateway, during.api.headers).get(PATH);

  async function show(gateway: string, { api, id }: Key, mustAnswer = false): Promise<void> {
    const request = { method: 'GET', path: PATH, headers: api.headers };
    const outcome = await workload.send('revocation', gateway, request, { refusals: CODES, baseUrl: gateway });
    const text = describeOutcome(outcome);
    if (text === '200' || (mustAnswer && text !== REFUSED)) flaws.push(`the revoked key ${id} had the response ${text}`);
  }

  async function watch(gateway: string): Promise<void> {
    while (!stopping.signal.aborted) {
      await show(gateway, before);
      if (revokedAt < performance.now()) await show(gateway, during);
      await pause(PAUSE_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }
  const watching = Promise.all(gateways.map(watch));

  /** Revokes the other key, which the fault may make fail. */
  async function revoke(): Promise<void> {
    const path = `/api/v1/panel/api-keys/${during.id}/revoke`;
    const outcome = await workload.send('revocation', 'owner', { method: 'POST', path, headers: owner.session.headers });
    if (describeOutcome(outcome) === '200') revokedAt = Math.min(revokedAt, performance.now());
  }

  /** Ends it once all goes well: both keys are revoked then, and rejected at every gateway. */
  async function stop(): Promise<void> {
    stopping.abort();
    await watching;
    await revoke();
    for (const gateway of gateways) for (const key of [before, during]) await show(gateway, key, true);
  }
  return { flaws, revoke, stop };
}
