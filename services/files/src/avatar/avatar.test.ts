import { eventually } from '@latchkey/testkit/eventually';
import sharp from 'sharp';
import { beforeAll, describe, expect, it } from 'vitest';
import { noiseImage, plainImage, webpChunks } from '../testing/avatar/images.ts';
import { avatarHoldings, reasonOf, someAccount, startTestAvatars, type TestAvatars } from '../testing/avatar/test-avatars.ts';
import { getAvatar } from './avatar.ts';

let test: TestAvatars;
beforeAll(async () => {
  test = await startTestAvatars();
  return () => test.stop();
});

/** What there is of an account with one avatar and nothing on its way. */
const ONE = { objects: 1, notes: 0 };

describe('an avatar', () => {
  it('is the account’s once its upload is answered, here and at identity', async () => {
    const accountId = someAccount();
    const id = await test.upload(accountId, await noiseImage(400, 300).jpeg().toBuffer());
    expect(test.identity.avatarOf(accountId)).toBe(id);
    const { avatarId, image } = await getAvatar(test.ctx, accountId, undefined);
    expect(avatarId).toBe(id);
    expect(await sharp(image).metadata()).toMatchObject({ format: 'webp', width: 256, height: 192 });
    expect(webpChunks(image)).toEqual(['VP8 ']);
    await eventually(async () => expect(await avatarHoldings(test, accountId)).toEqual({ states: ['recorded'], ...ONE }));
  });

  it('is told to identity as changed by who sent it, in the request that it was sent in', async () => {
    const image = await plainImage(10, 10).png().toBuffer();
    const actor = 'session 01900000-0000-7000-8000-00000000cafe 203.0.113.7';
    await test.upload(someAccount(), image, { actor });
    expect(test.identity.lastHeaders).toEqual([actor, 'request-1']);
    await test.upload(someAccount(), image);
    expect(test.identity.lastHeaders).toEqual([null, 'request-1']);
  });

  it('takes the place of the one before, whose image goes', async () => {
    const accountId = someAccount();
    const image = await plainImage(50, 50).png().toBuffer();
    const first = await test.upload(accountId, image);
    const second = await test.upload(accountId, image);
    expect(first).not.toBe(second);
    expect(test.identity.avatarOf(accountId)).toBe(second);
    expect((await getAvatar(test.ctx, accountId, second)).avatarId).toBe(second);
    expect(await reasonOf(getAvatar(test.ctx, accountId, first))).toBe('avatar_not_found');
    await eventually(async () =>
      expect(await avatarHoldings(test, accountId)).toEqual({ states: ['replaced', 'recorded'], ...ONE }),
    );
  });
});
