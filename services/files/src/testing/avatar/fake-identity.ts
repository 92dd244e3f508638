import { timestampMs } from '@bufbuild/protobuf/wkt';
import { createRouterTransport, type ServiceImpl, type Transport } from '@connectrpc/connect';
import { defineErrors, toConnectError } from '@latchkey/kit/errors';
import { AccountService } from '@latchkey/proto/latchkey/identity/v1/account_pb';

const errors = defineErrors({ account_not_found: { kind: 'not_found', message: 'Not found' } });

/** Stands for the identity service: keeps each account's avatar as that does, and nothing else. */
export interface FakeIdentity {
  readonly impl: Pick<ServiceImpl<typeof AccountService>, 'setAvatar'>;
  readonly transport: Transport;
  /** The avatar that an account has. */
  avatarOf(accountId: string): string | undefined;
  /** Makes each call fail with the error from now on. */
  failWith(err: Error | undefined): void;
  /** Each call waits for the promise before it does anything, from now on. */
  waitFor(gate: Promise<unknown> | undefined): void;
  /** Each call is done and its answer lost, from now on. */
  loseAnswers(lose: boolean): void;
  /** The account is nobody's. */
  forget(accountId: string): void;
  calls: number;
  /** `x-latchkey-actor` and `x-request-id` of the last call. */
  lastHeaders: readonly (string | null)[];
}

export function createFakeIdentity(): FakeIdentity {
  const avatars = new Map<string, { readonly id: string; readonly at: number }>();
  const forgotten = new Set<string>();
  let failure: Error | undefined;
  let gate: Promise<unknown> | undefined;
  let losing = false;
  const impl: FakeIdentity['impl'] = {
    async setAvatar({ accountId, avatarId, uploadedAt }, { requestHeader }) {
      fake.calls += 1;
      fake.lastHeaders = ['x-latchkey-actor', 'x-request-id'].map((name) => requestHeader.get(name));
      await gate;
      if (failure) throw failure;
      if (forgotten.has(accountId)) throw toConnectError(errors.account_not_found());
      const given = { id: avatarId, at: uploadedAt ? timestampMs(uploadedAt) : 0 };
      const current = avatars.get(accountId) ?? { id: '', at: 0 };
      const isLater = given.at > current.at || (given.at === current.at && given.id > current.id);
      if (isLater) avatars.set(accountId, given);
      if (losing) throw new Error('the answer is lost');
      return { avatarId: isLater ? given.id : current.id };
    },
  };
  const fake: FakeIdentity = {
    calls: 0,
    lastHeaders: [],
    avatarOf: (accountId) => avatars.get(accountId)?.id,
    failWith(err) {
      failure = err;
    },
    waitFor(promise) {
      gate = promise;
    },
    loseAnswers(lose) {
      losing = lose;
    },
    forget: (accountId) => void forgotten.add(accountId),
    impl,
    transport: createRouterTransport(({ service }) => void service(AccountService, impl)),
  };
  return fake;
}
