import { randomBytes } from 'node:crypto';
import { eventually } from '@latchkey/testkit/eventually';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Fleet, startFleet } from '../testing/fleet/fleet.ts';
import { startLoad } from '../testing/fleet/load.ts';
import { SERVICE_CREDENTIAL } from '../testing/instance.ts';

const OLD = SERVICE_CREDENTIAL;
const NEW = randomBytes(24).toString('base64url');
const PATIENCE = { timeoutMs: 60_000 };

/** Reads of an application with a credential of a service. */
async function isAccepted(url: string, credential: string): Promise<boolean> {
  const response = await fetch(`${url}/latchkey.apps.v1.ApplicationService/LookUpApplication`, {
    method: 'POST',
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
    body: JSON.stringify({ socketKey: 'lk_sock_unknown' }),
  });
  const { message } = (await response.json()) as { message: string };
  return message !== 'a service credential is required';
}

describe.skipIf(inject('latchkeyInstance').shape !== 'deployed')('the credential between services', () => {
  let fleet: Fleet;
  beforeAll(async () => {
    fleet = await startFleet();
  });
  afterAll(() => fleet?.stop());

  it('is changed without a stop: while one half of all processes and then the other is restarted, three times, no request fails', async () => {
    const load = await startLoad(fleet, { workers: 6 });
    await eventually(() => load.count() > 100, PATIENCE);
    for (const SERVICE_CREDENTIALS of [`${OLD},${NEW}`, `${NEW},${OLD}`, NEW]) {
      for (const half of ['1', '2']) {
        // On a busy machine, those restarted last would be stopped before the others are known to serve.
        for (const one of fleet.processes) await one.ready();
        const before = load.count();
        const processes = fleet.processes.filter(({ name }) => name.endsWith(half));
        await Promise.all(processes.map((one) => one.restart({ SERVICE_CREDENTIALS })));
        await eventually(() => load.count() > before + 50, PATIENCE);
      }
    }
    const { requests, failed } = await load.stop();
    expect(failed).toEqual([]);
    expect(requests).toBeGreaterThan(400);
    for (const { url } of fleet.processesOf('apps')) {
      expect([await isAccepted(url, NEW), await isAccepted(url, OLD)]).toEqual([true, false]);
    }
  }, 400_000);
});
