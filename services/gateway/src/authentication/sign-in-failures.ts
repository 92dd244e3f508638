import { hash } from 'node:crypto';
import { networkOf } from '@latchkey/kit/http/client-ip';
import type { Logger } from '@latchkey/kit/log/logger';
import type { Redis } from '@latchkey/kit/redis/redis';
import type { Count, Limiter } from '../limit/limiter.ts';
import { type Limit, limitReached } from '../limit/limits.ts';

/** A network is known for this long after the last sign-in from it: the longest lifetime of a session (decisions 4). */
const KNOWN_MS = 30 * 86_400_000;
/** Known networks of one account. Beyond the limit, the least recently used goes. */
const KNOWN_MAX = 20;

/**
 * Networks with one attempt each once the budget of unknown networks is spent. Owners move through fewer, and attackers with any
 * number of addresses guess some ten thousand passwords of an account a day at most.
 */
const SPARE_ATTEMPTS = 100;

/** KEYS: known networks. ARGV: network, time in ms, networks at most, lifetime in ms. */
const REMEMBER_SCRIPT = `
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])`;

/** What {@link SignInFailures} works with. */
export interface SignInFailuresOptions {
  readonly redis: Redis;
  readonly limiter: Limiter;
  readonly limit: Limit;
  readonly logger: Logger;
}

/** The counters of an attempt, which counts as a failure until it is refunded. */
export type SignInAttempt = readonly Count[];

/**
 * Limits wrong passwords per account (decisions 9), whether or not the account exists. Each network that the owner signed in from
 * lately has a budget, and all other networks share one. So strangers who fail with somebody's email do not lock out the owner: once the shared
 * budget is spent, each unknown network still has one attempt.
 */
export class SignInFailures {
  readonly #options: SignInFailuresOptions;

  constructor(options: SignInFailuresOptions) {
    this.#options = options;
  }

  /**
   * Counts an attempt as a failure, before the password is verified: concurrent attempts get no more than others. The caller refunds
   * successes.
   *
   * @throws `rate_limit_reached`
   */
  async begin(email: string, clientIp: string): Promise<SignInAttempt> {
    const { limit, limiter } = this.#options;
    const { account, network, wideNetwork } = subjectsOf(email, clientIp);
    const isKnown = await this.#isKnown(account, network);
    const count = { limit, subject: isKnown ? `${account}:${network}` : account };
    const state = await limiter.hit(count);
    if (state.allowed) return [count];
    if (isKnown) throw limitReached(state);
    // In this order: a network without an attempt takes none from the others.
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

  /** The attempt was no failure. */
  async refund(attempt: SignInAttempt): Promise<void> {
    await Promise.all(attempt.map((count) => this.#options.limiter.refund(count)));
  }

  /** Makes the network of a new session a known one of the account. */
  async remember(email: string, clientIp: string): Promise<void> {
    const { account, network } = subjectsOf(email, clientIp);
    const { redis, logger } = this.#options;
    try {
      await redis.eval(REMEMBER_SCRIPT, 1, keyOf(account), network, Date.now(), KNOWN_MAX, KNOWN_MS);
    } catch (err) {
      logger.debug({ err }, 'network of a sign-in not remembered');
    }
  }

  async #isKnown(account: string, network: string): Promise<boolean> {
    try {
      return (await this.#options.redis.zscore(keyOf(account), network)) !== null;
    } catch (err) {
      this.#options.logger.debug({ err }, 'known networks not read');
      return false;
    }
  }
}

const keyOf = (account: string) => `latchkey:known-networks:${account}`;

/** Hashes of an email in any case and of its client's networks, which differ for each email. Wide is an IPv4 address or an IPv6 /48, as providers give to customers. */
function subjectsOf(email: string, clientIp: string) {
  const account = digest(email.trim().toLowerCase());
  const network = networkOf(clientIp);
  const wide = network.split(':').slice(0, 3).join(':');
  return { account, network: digest(`${account} ${network}`), wideNetwork: digest(`${account} ${wide}`) };
}

/** Keeps emails and networks out of Redis. A guess can still be verified there: the gateway has no secret to hash them with. */
function digest(text: string): string {
  return hash('sha256', text, 'base64url');
}
