import { timestampFromDate, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { auditReader } from '@latchkey/audit/testing/audit-reader';
import { newId } from '@latchkey/kit/validation/id';
import { refusalOf } from '@latchkey/testkit/refusal';
import { describe, expect, it } from 'vitest';
import { openTestIdentity } from '../testing/identity.ts';
import { someAccountId } from '../testing/sample.ts';

const identity = await openTestIdentity();
const AT_MS = Date.parse('2026-05-12T09:00:00.000Z');

async function set(accountId: string, avatarId: string, atMs = AT_MS) {
  const answer = await identity.accounts.setAvatar({ accountId, avatarId, uploadedAt: timestampFromMs(atMs) });
  return { avatarId: answer.avatarId, previousAvatarId: answer.previousAvatarId };
}

const avatarOf = async (accountId: string) => (await identity.accounts.getAccount({ accountId })).account?.avatarId;

describe('SetAvatar', () => {
  it('records an avatar and returns the previous one', async () => {
    const [accountId, first, second] = [await someAccountId(identity), newId(), newId()];
    expect(await avatarOf(accountId)).toBe(undefined);
    expect(await set(accountId, first)).toEqual({ avatarId: first, previousAvatarId: undefined });
    expect(await avatarOf(accountId)).toBe(first);
    expect(await set(accountId, second, AT_MS + 1)).toEqual({ avatarId: second, previousAvatarId: first });
    expect(await avatarOf(accountId)).toBe(second);
  });

  it('may be repeated, also after a later upload', async () => {
    const [accountId, first, second] = [await someAccountId(identity), newId(), newId()];
    await set(accountId, first);
    expect(await set(accountId, first)).toEqual({ avatarId: first, previousAvatarId: undefined });
    await set(accountId, second);
    expect(await set(accountId, first)).toEqual({ avatarId: second, previousAvatarId: undefined });
  });

  it('records the last of concurrent uploads by time and id', async () => {
    const accountId = await someAccountId(identity);
    const ids = Array.from({ length: 20 }, () => newId());
    const shuffled = ids.toSorted((a, b) => a.slice(-6).localeCompare(b.slice(-6)));
    await Promise.all(shuffled.map((id) => set(accountId, id)));
    expect(await avatarOf(accountId)).toBe(ids.at(-1));
  });

  it('removes the avatar, and no upload that began before brings one back', async () => {
    const accountId = await someAccountId(identity);
    const [first, removal, late, second] = [newId(), newId(), newId(), newId()];
    const remove = (avatarId: string, atMs: number) =>
      identity.accounts.setAvatar({ accountId, avatarId, uploadedAt: timestampFromMs(atMs), removed: true });
    await set(accountId, first);
    expect(await remove(removal, AT_MS + 2)).toMatchObject({ avatarId: removal, previousAvatarId: first });
    await remove(removal, AT_MS + 2);
    for (const id of [first, late]) expect(await set(accountId, id, AT_MS + 1)).toMatchObject({ avatarId: removal });
    expect(await avatarOf(accountId)).toBe(undefined);
    await remove(newId(), AT_MS + 3);
    const entries = await auditReader(identity.service.routes)(accountId);
    expect(entries.filter(({ action }) => action === 'account.avatar_removed')).toHaveLength(1);
    expect(await set(accountId, second, AT_MS + 4)).toEqual({ avatarId: second, previousAvatarId: undefined });
    expect(await avatarOf(accountId)).toBe(second);
  });

  it('rejects an invalid avatar and an unknown account', async () => {
    const accountId = await someAccountId(identity);
    const uploadedAt = timestampFromDate(new Date(AT_MS));
    const reasonOf = async (call: Promise<unknown>) => (await refusalOf(call)).reason;
    expect(await reasonOf(set(accountId, 'x'))).toBe('avatar_invalid');
    for (const uploadedAt of [undefined, { seconds: 2n ** 63n - 1n, nanos: 0 }])
      expect(await reasonOf(identity.accounts.setAvatar({ accountId, avatarId: newId(), uploadedAt }))).toBe('avatar_invalid');
    for (const unknown of ['', 'x', newId()]) {
      const call = identity.accounts.setAvatar({ accountId: unknown, avatarId: newId(), uploadedAt });
      expect(await reasonOf(call)).toBe('account_not_found');
    }
  });
});
