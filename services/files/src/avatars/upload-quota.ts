import { ConcurrencyLimit, shareOf } from '../concurrency-limit.ts';
import { errors } from '../errors.ts';
import type { AvatarLimits } from './avatar-limits.ts';

/** Concurrent uploads of one account: a few accounts with slow bodies must not use up the quota. */
const PER_ACCOUNT = 2;

interface Sender {
  readonly accountId: string;
  readonly clientNetwork: string;
}

/** Limits concurrent uploads of avatars: in total, per account and per network. */
export function createUploadQuota({ uploadsAtOnce, bodyMs, waitMs }: AvatarLimits) {
  const total = new ConcurrencyLimit(uploadsAtOnce);
  const perAccount = new ConcurrencyLimit(PER_ACCOUNT);
  const perNetwork = new ConcurrencyLimit(shareOf(uploadsAtOnce, PER_ACCOUNT));
  const describe = (policy: string, { max }: ConcurrencyLimit) => ({
    policy,
    limit: String(max),
    windowSeconds: String(Math.ceil((bodyMs + waitMs) / 1_000)),
    remaining: '0',
    retryAfterSeconds: String(Math.ceil(bodyMs / 1_000)),
  });
  return {
    /** @throws DomainError `avatars_under_way`, `avatars_of_network`, `avatars_busy` */
    async run<T>({ accountId, clientNetwork }: Sender, upload: () => Promise<T>): Promise<T> {
      if (perAccount.isReached(accountId)) throw errors.avatars_under_way(describe('avatars-at-once', perAccount));
      if (perNetwork.isReached(clientNetwork)) throw errors.avatars_of_network(describe('avatars-at-once-ip', perNetwork));
      if (total.isReached('')) throw errors.avatars_busy();
      const count = (change: 1 | -1) => {
        perAccount.add(accountId, change);
        perNetwork.add(clientNetwork, change);
        total.add('', change);
      };
      count(1);
      try {
        return await upload();
      } finally {
        count(-1);
      }
    },
  };
}
