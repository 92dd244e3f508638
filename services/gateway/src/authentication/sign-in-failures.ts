import { hash } from 'node:crypto';
import { fromConnectError } from '@latchkey/kit/errors/errors';
import { networkOf } from '@latchkey/kit/http/client-ip';
import type { Logger } from '@latchkey/kit/log/logger';
import type { Redis } from '@latchkey/kit/redis/redis';
import type { Clients } from '../clients.ts';
import type { Count, RateLimiter } from '../rate-limit/rate-limiter.ts';
import { type Limit, limitReached } from '../rate-limit/rate-limits.ts';
import type { Principal } from './credential.ts';

/** Time that a network stays known after a sign-in: the longest lifetime of a session. */
const KNOWN_MS = 30 * 86_400_000;
/** Known networks of one account. Beyond the limit, the least recently used goes. */
const KNOWN_MAX = 20;

/**
 * Networks with one attempt each once the budget of unknown networks is spent. With any number of
 * addresses, attackers guess at most some ten thousand passwords a day.
 */
const SPARE_ATTEMPTS = 100;

/** KEYS: known networks. ARGV: network, time in ms, networks at most, lifetime in ms. */
const REMEMBER_SCRIPT = `
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])`;

/** Errors of identity for a password that it verified. */
const WRONG_PASSWORD = new Set(['sign_in_failed', 'owner_password_wrong']);

export type SignInFailures = ReturnType<typeof createSignInFailures>;

/**
 * Limits wrong passwords per account, whether or not the account exists: the number of the setting
 * `SIGN_IN_FAILURES_PER_15_MINUTES`, 10 by default, in 15 minutes (`rate-limits.ts`). Each network
 * of the owner's recent sign-ins has a budget, and all other networks share one. Once that is
 * spent, each unknown network still has one attempt, so that strangers do not lock out the owner.
 */
export function createSignInFailures({
  redis,
  limiter,
  limit,
  logger,
}: {
  readonly redis: Redis;
  readonly limiter: RateLimiter;
  readonly limit: Limit;
  readonly logger: Logger;
}) {
  async function isKnown(account: string, network: string): Promise<boolean> {
    try {
      return (await redis.zscore(keyOf(account), network)) !== null;
    } catch (err) {
      logger.debug({ err }, 'known networks not read');
      return false;
    }
  }

  async function begin(email: string, clientIp: string): Promise<readonly Count[]> {
    const { account, network, wideNetwork } = subjectsOf(email, clientIp);
    const known = await isKnown(account, network);
    const count = { limit, subject: known ? `${account}:${network}` : account };
    const state = await limiter.hit(count);
    if (state.allowed) return [count];
    if (known) throw limitReached(state);
    // In this order: a network that has used its attempt takes none of the shared ones.
    const spare = [
      { limit: { ...limit, max: 1 }, subject: `${account}:own:${wideNetwork}` },
      { limit: { ...limit, max: SPARE_ATTEMPTS }, subject: `${account}:spare` },
    ];
    for (const one of spare) {
      const { allowed, resetMs } = await limiter.hit(one);
      if (!allowed) throw limitReached({ ...state, resetMs: Math.min(state.resetMs, resetMs) });
    }
    return spare;
  }

  return {
    /**
     * Counts a wrong password as a failed sign-in; successes and other errors do not count.
     *
     * @param verify has identity verify the password of the account with that email
     * @throws `rate_limit_reached`, and what `verify` throws
     */
    async count<T>(email: string, clientIp: string, verify: () => Promise<T>): Promise<T> {
      // Counted before the password is verified: concurrent attempts share the budget.
      const attempt = await begin(email, clientIp);
      const refund = () => Promise.all(attempt.map((count) => limiter.refund(count)));
      try {
        const result = await verify();
        await refund();
        return result;
      } catch (err) {
        if (!WRONG_PASSWORD.has(fromConnectError(err)?.reason ?? '')) await refund();
        throw err;
      }
    },
    async remember(email: string, clientIp: string): Promise<void> {
      const { account, network } = subjectsOf(email, clientIp);
      try {
        await redis.eval(REMEMBER_SCRIPT, 1, keyOf(account), network, Date.now(), KNOWN_MAX, KNOWN_MS);
      } catch (err) {
        logger.debug({ err }, 'network of a sign-in not remembered');
      }
    },
  };
}

const keyOf = (account: string) => `latchkey:known-networks:${account}`;

/**
 * Hashes of an email in any case and of the client's networks, different for each email. The wide
 * network is an IPv4 address or an IPv6 /48, as providers give to customers.
 */
function subjectsOf(email: string, clientIp: string) {
  const account = digest(email.trim().toLowerCase());
  const network = networkOf(clientIp);
  const wide = network.split(':').slice(0, 3).join(':');
  return { account, network: digest(`${account} ${network}`), wideNetwork: digest(`${account} ${wide}`) };
}

/**
 * Hides emails and networks in Redis. Without a key: anyone who reads Redis can still test a
 * guessed email.
 */
function digest(text: string): string {
  return hash('sha256', text, 'base64url');
}

/** `SignInFailures.count` for a change that needs the password of the session's account. */
export async function countPasswordFailures<T>(
  { clients, signInFailures }: { readonly clients: Pick<Clients, 'accounts'>; readonly signInFailures: SignInFailures },
  { principal, clientIp }: { readonly principal: Principal; readonly clientIp: string },
  change: (session: { readonly accountId: string; readonly sessionId: string }) => Promise<T>,
): Promise<T> {
  const { accountId, credentialId: sessionId } = principal;
  const { account } = await clients.accounts.getAccount({ accountId });
  return signInFailures.count(account?.email ?? '', clientIp, () => change({ accountId, sessionId }));
}
