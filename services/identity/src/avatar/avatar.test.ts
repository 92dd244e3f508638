import { timestampFromDate, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { newId } from '@latchkey/kit/id';
import { createTestDatabase } from '@latchkey/testkit/database';
import { testRedis } from '@latchkey/testkit/redis';
import { beforeAll, describe, expect, it } from 'vitest';
import { migrateIdentity, refusalOf, startTestIdentity, type TestIdentity } from '../testing/identity.fixture.ts';
import { someAccountId } from '../testing/sample.fixture.ts';

let identity: TestIdentity;
beforeAll(async () => {
  const database = await createTestDatabase({ schema: 'identity', migrate: migrateIdentity });
  identity = await startTestIdentity({ databaseUrl: database.url, redisUrl: (await testRedis()).url });
  return async () => {
    await identity.stop();
    await database.drop();
  };
});

const AT_MS = Date.parse('2026-05-12T09:00:00.000Z');

async function set(accountId: string, avatarId: string, atMs = AT_MS) {
  const answer = await identity.accounts.setAvatar({ accountId, avatarId, uploadedAt: timestampFromMs(atMs) });
  return { avatarId: answer.avatarId, previousAvatarId: answer.previousAvatarId };
}

async function accountOf(accountId: string) {
  const { account } = await identity.accounts.getAccount({ accountId });
  return { avatarId: account?.avatarId, avatarUrl: account?.avatarUrl };
}

const urlOf = (avatarId: string) => `/api/v1/panel/avatar?v=${avatarId}`;

describe('SetAvatar', () => {
  it('gives the account an avatar and its URL, and says which one was there', async () => {
    const [accountId, first, second] = [await someAccountId(identity), newId(), newId()];
    expect(await accountOf(accountId)).toEqual({ avatarId: undefined, avatarUrl: undefined });
    expect(await set(accountId, first)).toEqual({ avatarId: first, previousAvatarId: undefined });
    expect(await accountOf(accountId)).toEqual({ avatarId: first, avatarUrl: urlOf(first) });
    expect(await set(accountId, second, AT_MS + 1)).toEqual({ avatarId: second, previousAvatarId: first });
    expect(await accountOf(accountId)).toEqual({ avatarId: second, avatarUrl: urlOf(second) });
  });

  it('changes nothing for an avatar that was uploaded before the one that is there', async () => {
    const [accountId, early, late] = [await someAccountId(identity), newId(), newId()];
    await set(accountId, late, AT_MS + 1);
    expect(await set(accountId, early)).toEqual({ avatarId: late, previousAvatarId: undefined });
    expect((await accountOf(accountId)).avatarId).toBe(late);
  });

  it('takes the same call again, also after a later one', async () => {
    const [accountId, first, second] = [await someAccountId(identity), newId(), newId()];
    await set(accountId, first);
    expect(await set(accountId, first)).toEqual({ avatarId: first, previousAvatarId: undefined });
    await set(accountId, second);
    expect(await set(accountId, first)).toEqual({ avatarId: second, previousAvatarId: undefined });
  });

  it('leaves one of many at once, the last by time and id, whatever their order', async () => {
    const accountId = await someAccountId(identity);
    const ids = Array.from({ length: 20 }, () => newId());
    const shuffled = ids.toSorted((a, b) => a.slice(-6).localeCompare(b.slice(-6)));
    await Promise.all(shuffled.map((id) => set(accountId, id)));
    expect((await accountOf(accountId)).avatarId).toBe(ids.at(-1));
  });

  it('leaves the avatars of other accounts alone', async () => {
    const [mine, other] = [await someAccountId(identity), await someAccountId(identity)];
    await set(mine, newId());
    expect((await accountOf(other)).avatarId).toBeUndefined();
  });

  it('refuses what is no avatar, and an account that is none', async () => {
    const accountId = await someAccountId(identity);
    const uploadedAt = timestampFromDate(new Date(AT_MS));
    const reasonOf = async (call: Promise<unknown>) => (await refusalOf(call)).reason;
    expect(await reasonOf(set(accountId, 'x'))).toBe('avatar_invalid');
    expect(await reasonOf(identity.accounts.setAvatar({ accountId, avatarId: newId() }))).toBe('avatar_invalid');
    for (const unknown of ['', 'x', newId()]) {
      const call = identity.accounts.setAvatar({ accountId: unknown, avatarId: newId(), uploadedAt });
      expect(await reasonOf(call)).toBe('account_not_found');
    }
  });
});

describe('the URL of the profile image', () => {
  it('is the one that the issuer named until an avatar is uploaded', async () => {
    const [accountId, avatarId] = [await someAccountId(identity), newId()];
    const picture = 'https://issuer.example/ada.png';
    await identity.db.query('update account set picture_url = $2 where id = $1', [accountId, picture]);
    expect(await accountOf(accountId)).toEqual({ avatarId: undefined, avatarUrl: picture });
    await set(accountId, avatarId);
    expect((await accountOf(accountId)).avatarUrl).toBe(urlOf(avatarId));
  });
});
