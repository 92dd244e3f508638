import { readFileSync } from 'node:fs';
import { Code, ConnectError } from '@connectrpc/connect';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis/redis';
import sharp from 'sharp';
import { expect, it, onTestFinished } from 'vitest';
import type { ObjectStore } from '../storage/object-store/object-store.ts';
import { noiseImage } from '../testing/avatar/images.ts';
import { avatarHoldings, reasonOf, someAccount, uploadTo, useTestAvatars } from '../testing/avatar/test-avatars.ts';
import { createAvatars } from './avatar.queue.ts';
import { getAvatar } from './avatar.ts';

const test = useTestAvatars();

const holds = (accountId: string, states: string[], objects: number) =>
  eventually(async () => expect(await avatarHoldings(test, accountId)).toEqual({ states, objects, notes: 0 }));

/** Processes that this one has started to decode. */
const decoderPids = () =>
  readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8')
    .split(' ')
    .filter((pid) => pid.trim() && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('decoder-process'));

/** An instance with a queue and decoders. */
async function start(methods: Partial<ObjectStore> = {}, env = {}, redisUrl?: string) {
  const { ctx } = test.files.connect({ env, changeStore: () => methods });
  const { setAvatar } = test.ctx;
  const avatars = createAvatars({ ...ctx, setAvatar }, redisUrl ?? (await testRedis()).url, 'inside');
  avatars.start();
  onTestFinished(() => avatars.stop());
  return uploadTo(avatars.receive);
}

it('without Redis, an upload ends with 503 within 5 s, and leaves nothing', async () => {
  const upload = await start({}, {}, 'redis://127.0.0.1:1');
  const accountId = someAccount();
  const startedAt = performance.now();
  expect(await reasonOf(upload(accountId, test.image))).toBe('dependency_unavailable');
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  await holds(accountId, ['abandoned'], 0);
});

it.each([
  ['on the local disk', {}],
  ['of another machine', { localPath: () => undefined }],
])('an image in a store %s becomes an avatar of at most 256 x 256', async (_where, methods) => {
  const upload = await start(methods);
  const accountId = someAccount();
  await upload(accountId, await noiseImage(400, 300).jpeg().toBuffer());
  const avatar = await getAvatar(test.ctx, accountId, undefined);
  expect(await sharp(avatar.image).metadata()).toMatchObject({ format: 'webp', width: 256, height: 192 });
});

it('leaves nothing of a rejected test.image, retries a failure, and decodes AVATAR_DECODES_AT_ONCE concurrently', async () => {
  const before = new Set(decoderPids());
  const upload = await start({}, { AVATAR_DECODES_AT_ONCE: '1' });
  const [rejected, retried] = [someAccount(), someAccount()];
  expect(await reasonOf(upload(rejected, Buffer.from('GIF89a')))).toBe('image_unsupported');
  await holds(rejected, ['refused'], 0);
  test.identity.after = async () => {
    test.identity.after = async () => undefined;
    throw new ConnectError('lost', Code.Unavailable);
  };
  expect(await upload(retried, test.image)).toBe((await getAvatar(test.ctx, retried, undefined)).avatarId);
  await holds(retried, ['recorded'], 1);
  await Promise.all(Array.from({ length: 4 }, () => upload(someAccount(), test.image)));
  if (process.platform === 'linux') expect(decoderPids().filter((pid) => !before.has(pid))).toHaveLength(1);
});
