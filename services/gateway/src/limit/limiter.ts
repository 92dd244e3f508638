import type { Logger } from '@latchkey/kit/logger';
import { Counter } from '@latchkey/kit/metrics/instrument';
import type { Redis } from '@latchkey/kit/redis';
import { AdmissionBatch } from './admission-batch.ts';
import { type Limit, type Standing, standing } from './limit.ts';
import { LocalCounters } from './local-counters.ts';
import { ADMIT_SCRIPT, HIT_SCRIPT, REFUND_SCRIPT } from './scripts.ts';

/** A limit and whom it is counted for. */
export interface Count {
  readonly limit: Limit;
  readonly subject: string;
}

/** A remembered authentication to confirm in the same round trip. */
export interface Recall {
  readonly epochKey: string;
  readonly epoch: string;
  /** Counted only if the epoch still stands. */
  readonly count: Count;
}

/** Answer to {@link Limiter.admit}. */
export interface Admission {
  readonly first: Standing;
  /** The standing of the recalled principal, or undefined where it must be authenticated anew. */
  readonly recalled: Standing | undefined;
}

/** How long Redis is left alone after a failure, in milliseconds, so that one that hangs does not slow every request. */
const PAUSE_MS = 1_000;

const fallbacks = new Counter({
  name: 'latchkey_rate_limit_fallbacks_total',
  help: 'Times that Redis did not count for a limit, so that each process counts for itself for a second.',
});

interface ScriptedRedis extends Redis {
  latchkeyHit(key: string, windowMs: number): Promise<[number, number]>;
  latchkeyAdmit(keys: number, ...args: Array<string | number>): Promise<number[]>;
  latchkeyRefund(key: string): Promise<number>;
}

/**
 * Counts events against limits, in Redis so that all gateways share them, and in this process while Redis can't be asked. Each
 * event counts whether it is allowed or not.
 */
export class Limiter {
  readonly #redis: ScriptedRedis;
  readonly #local = new LocalCounters();
  readonly #logger: Logger;
  readonly #admissions = new AdmissionBatch((keys, args) =>
    this.#ask((redis) => redis.latchkeyAdmit(keys.length, ...keys, ...args)),
  );
  #pausedUntil = 0;

  constructor(redis: Redis, logger: Logger) {
    redis.defineCommand('latchkeyHit', { lua: HIT_SCRIPT, numberOfKeys: 1 });
    redis.defineCommand('latchkeyAdmit', { lua: ADMIT_SCRIPT });
    redis.defineCommand('latchkeyRefund', { lua: REFUND_SCRIPT, numberOfKeys: 1 });
    this.#redis = redis as ScriptedRedis;
    this.#logger = logger;
  }

  /** Counts a request, and if that is allowed confirms and counts the remembered principal, in one round trip. */
  async admit(first: Count, recall: Recall): Promise<Admission> {
    const { limit, subject } = first;
    const principal = recall.count.limit;
    const counted = await this.#admissions.add(
      [keyOf(first), recall.epochKey, keyOf(recall.count)],
      [limit.windowMs, limit.max, recall.epoch, principal.windowMs],
    );
    if (!counted) return { first: this.#local.hit(limit, keyOf({ limit, subject })), recalled: undefined };
    const [count, resetMs, recalledCount, recalledResetMs] = counted;
    const recalled = recalledCount < 0 ? undefined : standing(principal, recalledCount, recalledResetMs);
    return { first: standing(limit, count, resetMs), recalled };
  }

  /** Counts one event. */
  async hit(count: Count): Promise<Standing> {
    const key = keyOf(count);
    const counted = await this.#ask((redis) => redis.latchkeyHit(key, count.limit.windowMs));
    return counted ? standing(count.limit, counted[0], counted[1]) : this.#local.hit(count.limit, key);
  }

  /** Takes one event back, for limits on what succeeded or failed. */
  async refund(count: Count): Promise<void> {
    const key = keyOf(count);
    const done = await this.#ask((redis) => redis.latchkeyRefund(key));
    if (done === undefined) this.#local.refund(key);
  }

  async #ask<T>(command: (redis: ScriptedRedis) => Promise<T>): Promise<T | undefined> {
    if (performance.now() < this.#pausedUntil) return undefined;
    try {
      return await command(this.#redis);
    } catch (err) {
      this.#logger.warn({ err }, 'limits are counted in this process for now');
      fallbacks.add(1);
      this.#pausedUntil = performance.now() + PAUSE_MS;
      return undefined;
    }
  }
}

function keyOf({ limit, subject }: Count): string {
  return `latchkey:limit:${limit.name}:${subject}`;
}
