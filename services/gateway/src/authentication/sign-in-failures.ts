import { hash } from 'node:crypto';
import { networkOf } from '@latchkey/kit/http/client-ip';
import type { Logger } from '@latchkey/kit/logger';
import type { Redis } from '@latchkey/kit/redis';
import { denial } from '../limit/headers.ts';
import type { Limit, Standing } from '../limit/limit.ts';
import type { Count, Limiter } from '../limit/limiter.ts';

/** A network is known for so long after the last sign-in from it: as long as a session may last (decisions 4). */
const KNOWN_MS = 30 * 86_400_000;
/** Networks known of one account; past that, the one unused for longest goes. */
const KNOWN_MAX = 20;

/**
 * Networks that get an attempt of their own within a window once the budget of strangers is spent. More than an owner moves through; few enough that
 * whoever has any number of addresses guesses some ten thousand passwords of an account a day and no more.
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

/** An attempt that counts as a failure until it is taken back. */
export interface SignInAttempt {
  readonly counts: readonly Count[];
}

/**
 * Limits wrong passwords per account (decisions 9), whether or not there is such an account. A network from which its owner has signed in lately has a
 * budget of its own; all others share one. So whoever keeps failing for somebody's email uses up the budget of strangers, and not that of the places
 * where the owner is at home. Of accounts whose owner is at home nowhere that we know, that alone would shut the owner out: once the strangers' budget is
 * spent, each of their networks still has one attempt.
 */
export class SignInFailures {
  readonly #options: SignInFailuresOptions;

  constructor(options: SignInFailuresOptions) {
    this.#options = options;
  }

  /**
   * Counts an attempt as a failure, which is to be taken back if it is none. It must come before the password is looked at: of attempts at once no more
   * are let through than of others.
   *
   * @throws `rate_limit_reached`
   */
  async begin(email: string, clientIp: string): Promise<SignInAttempt> {
    const { limit, limiter } = this.#options;
    const { account, network, wideNetwork } = placeOf(email, clientIp);
    const isKnown = await this.#isKnown(account, network);
    const count = { limit, subject: isKnown ? `${account}:${network}` : account };
    const standing = await limiter.hit(count);
    if (standing.allowed) return { counts: [count] };
    if (isKnown) throw denial(standing);
    return this.#beginSpare(account, wideNetwork, standing);
  }

  /** The attempt was no failure. */
  async takeBack({ counts }: SignInAttempt): Promise<void> {
    await Promise.all(counts.map((count) => this.#options.limiter.refund(count)));
  }

  /** The one attempt of a network that is not known, past the budget of all of them. One that is denied for itself takes none from the others. */
  async #beginSpare(account: string, wideNetwork: string, spent: Standing): Promise<SignInAttempt> {
    const { limit, limiter } = this.#options;
    const counts = [
      { limit: { ...limit, max: 1 }, subject: `${account}:own:${wideNetwork}` },
      { limit: { ...limit, max: SPARE_ATTEMPTS }, subject: `${account}:spare` },
    ];
    for (const count of counts) {
      const { allowed, resetMs } = await limiter.hit(count);
      if (!allowed) throw denial({ ...spent, resetMs: Math.min(spent.resetMs, resetMs) });
    }
    return { counts };
  }

  /** Somebody has a session of the account now, and is at home where they got it. */
  async remember(email: string, clientIp: string): Promise<void> {
    const { account, network } = placeOf(email, clientIp);
    try {
      await this.#options.redis.eval(REMEMBER_SCRIPT, 1, keyOf(account), network, Date.now(), KNOWN_MAX, KNOWN_MS);
    } catch (err) {
      this.#options.logger.debug({ err }, 'network of a sign-in not remembered');
    }
  }

  async #isKnown(account: string, network: string): Promise<boolean> {
    try {
      return (await this.#options.redis.zscore(keyOf(account), network)) !== null;
    } catch (err) {
      this.#options.logger.debug({ err }, 'network of a sign-in not looked up');
      return false;
    }
  }
}

function keyOf(account: string): string {
  return `latchkey:known-networks:${account}`;
}

/** An account and where somebody wants a session of it. */
interface Place {
  readonly account: string;
  readonly network: string;
  /** What one provider gives one customer: an IPv4 address, or an IPv6 /48, of which an attacker has all networks. */
  readonly wideNetwork: string;
}

/** An email in any case, and networks that are told apart for each email. */
function placeOf(email: string, clientIp: string): Place {
  const account = digest(email.trim().toLowerCase());
  const network = networkOf(clientIp);
  const wide = network.split(':').slice(0, 3).join(':');
  return { account, network: digest(`${account} ${network}`), wideNetwork: digest(`${account} ${wide}`) };
}

/** Neither emails nor who signed in from where can be read in Redis. A guess at them can be checked there, as the gateway has no key to hash them with. */
function digest(text: string): string {
  return hash('sha256', text, 'base64url');
}
