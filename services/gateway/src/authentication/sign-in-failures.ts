import { hash } from 'node:crypto';
import { networkOf } from '@latchkey/kit/http/client-ip';
import type { Logger } from '@latchkey/kit/logger';
import type { Redis } from '@latchkey/kit/redis';
import { denial } from '../limit/headers.ts';
import type { Limit } from '../limit/limit.ts';
import type { Count, Limiter } from '../limit/limiter.ts';

/** A network is known for so long after the last sign-in from it: as long as a session may last (decisions 4). */
const KNOWN_MS = 30 * 86_400_000;
/** Networks known of one account; past that, the one unused for longest goes. */
const KNOWN_MAX = 20;

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

/**
 * Limits wrong passwords per account (decisions 9), whether or not there is such an account. A network from which its owner has signed in lately has a
 * budget of its own; all others share one. So whoever keeps failing for somebody's email uses up the budget of strangers, and not that of the places
 * where the owner is at home.
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
  async begin(email: string, clientIp: string): Promise<Count> {
    const { account, network } = placeOf(email, clientIp);
    const subject = (await this.#isKnown(account, network)) ? `${account}:${network}` : account;
    const count = { limit: this.#options.limit, subject };
    const standing = await this.#options.limiter.hit(count);
    if (!standing.allowed) throw denial(standing);
    return count;
  }

  /** The attempt was no failure. */
  async takeBack(count: Count): Promise<void> {
    await this.#options.limiter.refund(count);
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

/** An email in any case, and a network that is told apart for each email. */
function placeOf(email: string, clientIp: string): { readonly account: string; readonly network: string } {
  const account = digest(email.trim().toLowerCase());
  return { account, network: digest(`${account} ${networkOf(clientIp)}`) };
}

/** Neither emails nor who signed in from where stand in Redis. */
function digest(text: string): string {
  return hash('sha256', text, 'base64url');
}
