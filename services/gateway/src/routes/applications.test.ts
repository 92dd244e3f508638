import { randomUUID } from 'node:crypto';
import { eventually } from '@latchkey/testkit/eventually';
import { expect, it } from 'vitest';
import { toKey, useTestGateway } from '../testing/test-gateway.ts';

/** Accounts of the lists that have begun. They last until the gate opens. */
const begun: string[] = [];
const searches: string[] = [];
const gate = Promise.withResolvers<void>();
const gateway = useTestGateway({
  // The key is the id of its account.
  authentication: { authenticate: async ({ credential: { value } }) => toKey(['applications:read'], { accountId: value }) },
  applications: {
    listApplications: async ({ accountId }) => {
      begun.push(accountId);
      await gate.promise;
      return {};
    },
    listApplicationSummaries: async ({ search }) => {
      searches.push(search);
      return {};
    },
  },
});

const list = (accountId: string) =>
  fetch(`${gateway.baseUrl}/api/v1/panel/get-applications`, { headers: { authorization: `Bearer ${accountId}` } });

it('runs four lists of an account concurrently, lets 596 wait, rejects the next, and delays no other account', async () => {
  const [many, one] = [randomUUID(), randomUUID()];
  const responses = Array.from({ length: 601 }, () => list(many));
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
  expect(statuses.toSorted()).toEqual([...Array(601).fill(200), 429]);
});

it('searches for texts in the form that names are stored in', async () => {
  const texts = ['E\u0301diteur', ' \u200bditeur ', '%_', ''];
  for (const text of texts) {
    const path = `/api/v1/panel/list-applications?search=${encodeURIComponent(text)}`;
    await gateway.send('GET', path, { headers: { authorization: `Bearer ${randomUUID()}` } });
  }
  expect(searches).toEqual(['\u00c9diteur', 'diteur', '%_', '']);
});
