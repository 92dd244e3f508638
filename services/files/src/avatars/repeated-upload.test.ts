import { createHash, randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { identifyCall, resumeCall } from '@latchkey/audit/idempotency';
import { eventually } from '@latchkey/testkit/eventually';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { avatarHoldings, reasonOf, someAccount, type TestAvatars, useTestAvatars } from '../testing/avatar/test-avatars.ts';
import { holdProcessLock } from '../testing/test-files.ts';
import { findUploadedAvatar } from './avatar.ts';
import { makeAvatar } from './make-avatar.ts';

const test = useTestAvatars();

let accountId: string;
let idempotency: Record<string, string>;
beforeEach(() => {
  accountId = someAccount();
  idempotency = { 'idempotency-key': randomUUID(), 'x-latchkey-idempotency': 'cHJpbnQ POST:/avatars' };
});

const find = (headers = idempotency) =>
  resumeCall(identifyCall(accountId, headers), test.files.ctx.resultKey, () => findUploadedAvatar(test.ctx));
const upload = (instance: Pick<TestAvatars, 'upload'> = test, body: Buffer | Readable = test.image) =>
  instance.upload(accountId, body, { idempotency });

/** Starts an upload whose body does not come; returns its end. */
function startStalled(instance: Pick<TestAvatars, 'upload'>) {
  const body = new Readable({ read: () => undefined });
  const ended = reasonOf(upload(instance, body));
  onTestFinished(async () => {
    body.destroy();
    await ended;
  });
}

const WAIT = { timeoutMs: 15_000 };

it('the result of an upload is kept with its test.image, for the key and for the fingerprint', async () => {
  const id = await upload();
  await test.upload(accountId, test.image);
  expect(await find()).toBe(id);
  expect(await find({ ...idempotency, 'idempotency-key': randomUUID() })).toBe(undefined);
  const other = { ...idempotency, 'x-latchkey-idempotency': 'b3RoZXI POST:/avatars' };
  expect(await reasonOf(find(other))).toBe('idempotency_key_reused');
});

it('a body of another checksum is rejected, and nothing is kept', async () => {
  const checksum = createHash('sha256').update('another').digest();
  expect(await reasonOf(test.upload(accountId, test.image, { idempotency, checksum }))).toBe('checksum_mismatch');
  expect(await find()).toBe(undefined);
  expect(await reasonOf(upload())).toBe('done');
});

it('a look-up records an avatar that is stored but not yet the account’s', async () => {
  test.identity.before = () => Promise.reject(new Error('not now'));
  const enqueue = (id: string) => makeAvatar(test.ctx, id).catch(() => undefined);
  expect(await reasonOf(upload(test.connect({ enqueue, limits: { waitMs: 1 } })))).toBe('outcome_unknown');
  test.identity.before = async () => undefined;
  const id = await find();
  expect(test.identity.avatarOf(accountId)).toBe(id);
  expect((await avatarHoldings(test, accountId)).states).toEqual(['recorded']);
});

it('an upload is rejected while another with its key runs, and takes over once the process of that one has ended', async () => {
  const other = test.connect();
  await holdProcessLock(other.ctx);
  startStalled(other);
  await eventually(async () => expect((await avatarHoldings(test, accountId)).states).toEqual(['waiting']), WAIT);
  expect(await reasonOf(upload())).toBe('idempotency_in_progress');
  await other.ctx.processLock.stop();
  const id = await eventually(() => upload(), WAIT);
  expect([test.identity.avatarOf(accountId), await find()]).toEqual([id, id]);
  expect((await avatarHoldings(test, accountId)).states).toEqual(['abandoned', 'recorded']);
});

it('an upload whose key another one used since its look-up has no effect', async () => {
  const first = await upload();
  let queued = '';
  const instance = test.connect({
    enqueue: async (id) => {
      queued = id;
      await makeAvatar(test.ctx, id);
    },
  });
  expect(await reasonOf(upload(instance))).toBe('idempotency_in_progress');
  expect([test.identity.avatarOf(accountId), await find()]).toEqual([first, first]);
  await makeAvatar(test.ctx, queued);
  expect((await avatarHoldings(test, accountId)).states).toEqual(['recorded', 'refused']);
});
