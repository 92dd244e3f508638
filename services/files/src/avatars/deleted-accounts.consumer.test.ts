import { timestampDate, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { createRouterTransport } from '@connectrpc/connect';
import { AccountService, type ListDeletedAccountsRequest } from '@latchkey/proto/latchkey/identity/v1/account_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { expect, it } from 'vitest';
import { avatarHoldings, someAccount, useTestAvatars } from '../testing/avatar/test-avatars.ts';
import { createDeletedAccountsSweep } from './deleted-accounts.consumer.ts';

const test = useTestAvatars();

it('avatars of deleted accounts end with their images, on every page, and those of others stay', async () => {
  const [first, second, other] = [someAccount(), someAccount(), someAccount()];
  for (const accountId of [first, second, other]) await test.upload(accountId, test.image);
  const one = { states: ['recorded'], objects: 1, notes: 0 };
  await eventually(async () => expect(await avatarHoldings(test, first)).toEqual(one));
  const pages = [[someAccount(), first], [second]];
  const requests: ListDeletedAccountsRequest[] = [];
  const listDeletedAccounts = (request: ListDeletedAccountsRequest) => {
    requests.push(request);
    const at = pages.findIndex((page) => page.at(-1) === request.afterAccountId) + 1;
    return { accounts: (pages[at] ?? []).map((accountId) => ({ accountId, deletedAt: timestampFromMs(1_000 * at) })) };
  };
  const transport = createRouterTransport(({ service }) => void service(AccountService, { listDeletedAccounts }));
  let woken = 0;
  const sweep = createDeletedAccountsSweep(test.files.ctx, transport, () => {
    woken += 1;
  });
  const { signal } = new AbortController();
  await sweep(signal);
  await test.sweepAll();
  for (const accountId of [first, second])
    expect(await avatarHoldings(test, accountId)).toEqual({ states: [], objects: 0, notes: 0 });
  expect(await avatarHoldings(test, other)).toEqual(one);
  expect([woken, requests.map(({ afterAccountId }) => afterAccountId)]).toEqual([2, ['', first, second]]);
  const now = test.files.ctx.clock().getTime();
  await sweep(signal);
  const { deletedSince } = requests[3] ?? {};
  const reachMs = deletedSince ? now - timestampDate(deletedSince).getTime() : Number.NaN;
  expect(Math.abs(reachMs - 5 * 60_000)).toBeLessThan(60_000);
});
