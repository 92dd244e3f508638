import { afterAll, beforeAll, expect, it } from 'vitest';
import { type OwnInstance, startOwnInstance } from '../testing/own-instance.ts';

let instance: OwnInstance;
beforeAll(async () => {
  instance = await startOwnInstance({ env: { TRUSTED_PROXIES: '198.51.100.0/24', RATE_LIMIT_IP_PER_MINUTE: '20' } });
});
afterAll(() => instance.stop());

it('an address that anybody but a trusted proxy forwards counts for nothing', async () => {
  const names = [
    'x-forwarded-for',
    'forwarded',
    'x-real-ip',
    'true-client-ip',
    'cf-connecting-ip',
    'x-client-ip',
    'x-forwarded-host',
  ];
  const statuses: number[] = [];
  for (let i = 0; i < 21; i += 1) {
    const headers = Object.fromEntries(
      names.map((name) => [name, name === 'forwarded' ? `for=203.0.113.${i}` : `203.0.113.${i}`]),
    );
    statuses.push((await instance.api.with(headers).get('/nowhere')).status);
  }
  expect([statuses[0], statuses.at(-1)]).toEqual([404, 429]);
});
