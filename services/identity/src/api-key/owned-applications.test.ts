import { Code, ConnectError } from '@connectrpc/connect';
import { refusalOf } from '@latchkey/testkit/refusal';
import { expect, test } from 'vitest';
import { openTestIdentity, outcomeOf } from '../testing/identity.ts';
import { createSomeKey, OPEN_KEY, someAccountId } from '../testing/sample.ts';

const identity = await openTestIdentity();

test('an application that is another account’s, unknown or no id is not found, with one answer', async () => {
  const accountId = await someAccountId(identity);
  const [mine = ''] = identity.apps.createApplications(accountId, 1);
  const [others = ''] = identity.apps.createApplications(await someAccountId(identity), 1);
  const refusals = [];
  for (const id of [others, crypto.randomUUID(), 'not-a-uuid', '\0', '\ud800']) {
    const settings = { ...OPEN_KEY, accountId, allApplications: false, applicationIds: [mine, id] };
    refusals.push(await refusalOf(identity.apiKeys.createApiKey(settings)));
  }
  expect(refusals[0]).toMatchObject({ reason: 'application_not_found', kind: 'not_found', code: 'not_found' });
  for (const refusal of refusals) expect(refusal).toEqual(refusals[0]);
});

test('an application named more than once, in any case, is kept once', async () => {
  const accountId = await someAccountId(identity);
  const [id = ''] = identity.apps.createApplications(accountId, 1);
  const applicationIds = [id, id.toUpperCase(), id];
  const { apiKey } = await createSomeKey(identity, { accountId, allApplications: false, applicationIds });
  expect(apiKey.applicationIds).toEqual([id]);
});

test('a key is not made while the apps service can’t be asked, and the question carries the request’s id', async () => {
  const accountId = await someAccountId(identity);
  const applicationIds = identity.apps.createApplications(accountId, 1);
  const settings = { ...OPEN_KEY, accountId, allApplications: false, applicationIds };
  identity.apps.failWith(new ConnectError('gone', Code.Unavailable));
  expect(await outcomeOf(identity.apiKeys.createApiKey(settings))).toBe('dependency_unavailable');
  identity.apps.failWith(undefined);
  await identity.apiKeys.createApiKey(settings, { headers: { 'x-request-id': 'request-7' } });
  expect(identity.apps.requestIds.at(-1)).toBe('request-7');
});
