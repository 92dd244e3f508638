import { timestampMs } from '@bufbuild/protobuf/wkt';
import { createRouterTransport, type ServiceImpl } from '@connectrpc/connect';
import { AccountService } from '@latchkey/proto/latchkey/identity/v1/account_pb';

export type FakeIdentity = ReturnType<typeof createFakeIdentity>;

/** Stands for the identity service: stores each account's avatar as that does. */
export function createFakeIdentity() {
  const avatars = new Map<string, { readonly id: string; readonly at: number; readonly removed: boolean }>();
  const impl: Pick<ServiceImpl<typeof AccountService>, 'setAvatar'> = {
    async setAvatar({ accountId, avatarId, uploadedAt, removed }, { requestHeader }) {
      fake.calls.push(['x-latchkey-actor', 'x-request-id'].map((name) => requestHeader.get(name)));
      await fake.before();
      const given = { id: avatarId, at: uploadedAt ? timestampMs(uploadedAt) : 0, removed };
      const stored = avatars.get(accountId) ?? { id: '', at: 0, removed: true };
      const isLater = given.at > stored.at || (given.at === stored.at && given.id > stored.id);
      const current = isLater ? given : stored;
      avatars.set(accountId, current);
      await fake.after();
      return { avatarId: current.id };
    },
  };
  const fake = {
    impl,
    transport: createRouterTransport(({ service }) => void service(AccountService, impl)),
    avatarOf(accountId: string) {
      const { id, removed = true } = avatars.get(accountId) ?? {};
      return removed ? undefined : id;
    },
    /** Run by each call, before and after it sets the avatar; may wait or throw. */
    before: async (): Promise<unknown> => undefined,
    after: async (): Promise<unknown> => undefined,
    /** `x-latchkey-actor` and `x-request-id` of each call. */
    calls: [] as (string | null)[][],
  };
  return fake;
}
