import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { useTestGateway } from '../testing/test-gateway.ts';

const MAX = 3;
let reads = 0;
const gateway = useTestGateway({
  env: { TRUSTED_PROXIES: 'loopback', UPDATE_FEEDS_PER_MINUTE: String(MAX), RATE_LIMIT_IP_PER_MINUTE: '10' },
  releases: {
    getFeed: async () => {
      reads += 1;
      return { applicationName: 'Acme', publicUpdates: true, releases: [{ version: '1.4.0', rolloutPercent: 100 }] };
    },
  },
});

const poll = (applicationId: string, address: string) =>
  fetch(`${gateway.baseUrl}/api/v1/updates/${applicationId}/stable/latest.json`, {
    headers: { 'x-forwarded-for': address },
  });

it('limits the polls of each application and address before the feed is read, and all polls of an address', async () => {
  const [application, other] = [randomUUID(), randomUUID()];
  const statuses: number[] = [];
  for (let i = 0; i < MAX + 1; i += 1) statuses.push((await poll(application, '192.0.2.1')).status);
  expect(statuses).toEqual([200, 200, 200, 429]);
  expect(reads).toBe(MAX);
  const rejected = await poll(application.toUpperCase(), '192.0.2.1');
  expect([rejected.status, rejected.headers.get('ratelimit-policy')]).toEqual([429, '"update-feeds";q=3;w=60']);
  expect((await poll(application, '192.0.2.2')).status).toBe(200);
  const allowed = await poll(other, '192.0.2.1');
  expect([allowed.status, allowed.headers.get('ratelimit')]).toEqual([200, expect.stringMatching(/^"update-feeds";r=2;/)]);
  for (let i = 0; i < 4; i += 1) expect((await poll(randomUUID(), '192.0.2.1')).status).toBe(200);
  const exhausted = await poll(randomUUID(), '192.0.2.1');
  expect([exhausted.status, exhausted.headers.get('ratelimit-policy')]).toEqual([429, '"ip";q=10;w=60']);
});
