import { randomUUID } from 'node:crypto';
import { PrincipalKind } from '@latchkey/proto/latchkey/identity/v1/authentication_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type TestGatewayOptions as FakeServices, startTestGateway, type TestGateway } from '../testing/test-gateway.ts';

let gateway: TestGateway;
/** Accounts of the lists that have begun. They last until the gate opens. */
const begun: string[] = [];
const gate = Promise.withResolvers<void>();
beforeAll(async () => {
  const services: FakeServices = {
    authentication: {
      // The key is the id of its account.
      authenticate: async ({ credential }) => ({
        principal: {
          kind: PrincipalKind.API_KEY,
          accountId: credential.value ?? '',
          credentialId: randomUUID(),
          scopes: ['applications:read'],
          allApplications: true,
        },
      }),
    },
    applications: {
      listApplications: async ({ accountId }) => {
        begun.push(accountId);
        await gate.promise;
        return {};
      },
    },
  };
  gateway = await startTestGateway({ redisUrl: (await testRedis()).url, ...services });
});
afterAll(() => gateway.service.stop());

const list = (accountId: string) =>
  fetch(`${gateway.baseUrl}/api/v1/panel/get-applications`, { headers: { authorization: `Bearer ${accountId}` } });

it('runs four lists of an account concurrently, lets 60 wait, rejects the next, and delays no other account', async () => {
  const [many, one] = [randomUUID(), randomUUID()];
  const responses = Array.from({ length: 65 }, () => list(many));
  const rejected = await Promise.race(responses);
  expect(rejected.status).toBe(429);
  expect(await rejected.json()).toMatchObject({ code: 'rate_limit_reached' });
  expect(Object.fromEntries(rejected.headers)).toMatchObject({
    'retry-after': '1',
    'ratelimit-policy': '"concurrent-lists";q=4;w=1',
    ratelimit: '"concurrent-lists";r=0;t=1',
  });
  const other = list(one);
  await eventually(() => expect(begun).toContain(one));
  expect(begun.toSorted()).toEqual([...Array(4).fill(many), one].toSorted());
  gate.resolve();
  const statuses = (await Promise.all([...responses, other])).map(({ status }) => status);
  expect(statuses.toSorted()).toEqual([...Array(65).fill(200), 429]);
});
