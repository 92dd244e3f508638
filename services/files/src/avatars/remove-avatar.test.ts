import { SERVICE_ORIGIN } from '@latchkey/audit/actor';
import { eventually } from '@latchkey/testkit/eventually';
import { beforeEach, expect, it } from 'vitest';
import { avatarHoldings, reasonOf, someAccount, useTestAvatars } from '../testing/avatar/test-avatars.ts';
import { getAvatar, removeAvatar } from './avatar.ts';

const test = useTestAvatars();

let accountId: string;
beforeEach(() => {
  accountId = someAccount();
});

const remove = () => removeAvatar(test.ctx, accountId, SERVICE_ORIGIN);
const holds = (expected: unknown) => eventually(async () => expect(await avatarHoldings(test, accountId)).toEqual(expected));
const current = () => reasonOf(getAvatar(test.ctx, accountId, undefined));

it('a removal takes the avatar here and at identity, with its test.image, and another upload brings one back', async () => {
  await remove();
  await test.upload(accountId, test.image);
  await remove();
  await remove();
  expect([await current(), test.identity.avatarOf(accountId)]).toEqual(['avatar_not_found', undefined]);
  await holds({ states: ['replaced', 'replaced', 'replaced', 'replaced'], objects: 0, notes: 0 });
  const id = await test.upload(accountId, test.image);
  expect([await current(), test.identity.avatarOf(accountId)]).toEqual(['done', id]);
  await test.sweepAll();
  await holds({ states: ['recorded'], objects: 1, notes: 0 });
});

it('an upload that began before a removal does not come back after it', async () => {
  const gate = Promise.withResolvers<void>();
  const calls = test.identity.calls.length;
  test.identity.before = () => gate.promise;
  const upload = reasonOf(test.upload(accountId, test.image));
  await eventually(() => expect(test.identity.calls.length).toBe(calls + 1));
  test.identity.before = async () => undefined;
  await remove();
  gate.resolve();
  expect(await upload).toBe('done');
  expect([await current(), test.identity.avatarOf(accountId)]).toEqual(['avatar_not_found', undefined]);
  await holds({ states: ['replaced', 'replaced'], objects: 0, notes: 0 });
});

it('a removal that identity does not answer is completed by the sweeper', async () => {
  const id = await test.upload(accountId, test.image);
  test.identity.before = () => Promise.reject(new Error('not now'));
  await expect(remove()).rejects.toThrow();
  expect([await current(), test.identity.avatarOf(accountId)]).toEqual(['done', id]);
  test.identity.before = async () => undefined;
  await test.sweepAll();
  expect([await current(), test.identity.avatarOf(accountId)]).toEqual(['avatar_not_found', undefined]);
  await holds({ states: ['replaced', 'replaced'], objects: 0, notes: 0 });
});

it('a removal does not wait for a store that hangs', async () => {
  await test.upload(accountId, test.image);
  const remove = () => new Promise<never>(() => undefined);
  const { ctx } = test.connect({ changeStore: () => ({ remove }) });
  await removeAvatar({ ...test.ctx, store: ctx.store }, accountId, SERVICE_ORIGIN);
  expect([await current(), test.identity.avatarOf(accountId)]).toEqual(['avatar_not_found', undefined]);
});
