import { rm, writeFile } from 'node:fs/promises';
import { eventually } from '@latchkey/testkit/eventually';
import { beforeEach, describe, expect, it } from 'vitest';
import { getAvatar } from '../../avatars/get-avatar.ts';
import { plainImage } from '../../testing/avatar/images.ts';
import { avatarHoldings, reasonOf, someAccount, startTestAvatars, type TestAvatars } from '../../testing/avatar/test-avatars.ts';
import { check } from '../../testing/damage.ts';
import { objectKey } from '../object-store/object-store.ts';

let test: TestAvatars;
beforeEach(async () => {
  test = await startTestAvatars();
  return () => test.stop();
});

/** Uploads an avatar and answers its id, and where its image lies. */
async function uploadOne(accountId = someAccount()) {
  const id = await test.upload(accountId, await plainImage(40, 40).png().toBuffer());
  await eventually(async () => expect((await avatarHoldings(test, accountId)).notes).toBe(0));
  const { rows } = await test.files.db.query('select image_id from avatar where id = $1', [id]);
  return { accountId, id, path: test.ctx.store.localPath(objectKey(accountId, rows[0].image_id)) as string };
}

describe('a check', () => {
  it('knows the images of avatars', async () => {
    const { accountId } = await uploadOne();
    await uploadOne(accountId);
    await uploadOne();
    expect(await check(test.ctx, { repair: true })).toMatchObject({
      found: [],
      left: 0,
      counts: { avatars: 2, objects: 2, files: 0 },
    });
    expect((await avatarHoldings(test, accountId)).objects).toBe(1);
  });

  it('finds lost images; repaired, the accounts have no avatar and may upload another', async () => {
    const [gone, rotten, whole] = [await uploadOne(), await uploadOne(), await uploadOne()];
    await rm(gone.path);
    await writeFile(rotten.path, 'other bytes');
    const { found, left } = await check(test.ctx);
    expect({ found, left }).toEqual({ found: [`lost avatar ${gone.id}`, `lost avatar ${rotten.id}`].toSorted(), left: 2 });
    expect((await check(test.ctx, { repair: true })).left).toBe(0);
    expect((await check(test.ctx)).found).toEqual([]);
    for (const { accountId } of [gone, rotten]) {
      expect(await reasonOf(getAvatar(test.ctx, accountId, undefined))).toBe('avatar_not_found');
      await uploadOne(accountId);
      expect(await reasonOf(getAvatar(test.ctx, accountId, undefined))).toBe('done');
    }
    expect((await getAvatar(test.ctx, whole.accountId, undefined)).avatarId).toBe(whole.id);
  });

  it('repairs nothing where there is no object at all', async () => {
    const { path } = await uploadOne();
    await rm(path);
    expect(await check(test.ctx, { repair: true })).toMatchObject({ doubt: 'files', left: 1 });
  });
});
