import { eventually } from '@latchkey/testkit/eventually';
import { expect, it } from 'vitest';
import { useTestGateway } from './testing/test-gateway.ts';

let checks = 0;
let isReady = true;
const gateway = useTestGateway({
  env: { RATE_LIMIT_IP_PER_MINUTE: '1' },
  checkReady: async () => {
    checks += 1;
    if (!isReady) throw new Error('the database is down');
  },
});
const probe = async (path: string) => {
  const response = await fetch(gateway.baseUrl + path);
  return `${response.status} ${await response.text()}`;
};

it('the readiness probe follows the services without a rate limit, one check for concurrent requests', async () => {
  const responses = await Promise.all(Array.from({ length: 50 }, () => probe('/readyz')));
  expect(new Set(responses)).toEqual(new Set(['200 {"status":"ready"}']));
  expect(checks).toBeLessThan(10);
  isReady = false;
  await eventually(async () => expect(await probe('/readyz')).toBe('503 {"status":"not ready"}'));
  const before = checks;
  expect(await probe('/healthz')).toBe('200 {"status":"ok"}');
  expect(checks).toBe(before);
  isReady = true;
  await eventually(async () => expect(await probe('/readyz')).toMatch(/^200/));
});
