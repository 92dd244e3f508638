import type { Logger } from '@latchkey/kit/log/logger';
import type { Redis } from '@latchkey/kit/redis/redis';
import { Counter } from '@latchkey/kit/telemetry/metrics';
import { LRUCache } from 'lru-cache';
import { type Limit, type LimitState, toLimitState } from './rate-limits.ts';

export interface Count {
  readonly limit: Limit;
  readonly subject: string;
}

/** Redis key of the epoch of a cached principal, and the value that it must have. */
export interface Epoch {
  readonly epochKey: string;
  readonly epoch: string;
}

/** Pause after an error of Redis, in milliseconds: a hanging Redis must not slow every request. */
const PAUSE_MS = 1_000;

const fallbacks = new Counter({
  name: 'latchkey_rate_limit_fallbacks_total',
  help: 'Times that Redis did not count for a limit, so that each process counts for itself for a second.',
});

/** Counts an event in a window that begins with the first. Returns the count and the ms left. */
const HIT_FUNCTION = `
local function hit(key, window)
  local count = redis.call('INCR', key)
  local left = count > 1 and redis.call('PTTL', key) or -1
  if left < 0 then
    redis.call('PEXPIRE', key, window)
    left = tonumber(window)
  end
  return count, left
end`;

/** KEYS: counter. ARGV: window in ms. */
const HIT_SCRIPT = `${HIT_FUNCTION}
return {hit(KEYS[1], ARGV[1])}`;

/**
 * Any number of requests. KEYS of each: request counter, epoch, other counter. ARGV of each: window
 * and maximum of the first, expected epoch, window of the last. Results of each: count and
 * milliseconds left of the first, then of the last, or -1 if rejected or of another epoch. The
 * first key in place of the epoch expects none.
 */
const HIT_BOTH_SCRIPT = `${HIT_FUNCTION}
local results = {}
for request = 0, #KEYS / 3 - 1 do
  local key, arg, result = request * 3, request * 4, request * 4
  local count, left = hit(KEYS[key + 1], ARGV[arg + 1])
  local other, otherLeft = -1, -1
  local epoch = KEYS[key + 2]
  if count <= tonumber(ARGV[arg + 2]) and (epoch == KEYS[key + 1] or redis.call('GET', epoch) == ARGV[arg + 3]) then
    other, otherLeft = hit(KEYS[key + 3], ARGV[arg + 4])
  end
  results[result + 1], results[result + 2], results[result + 3], results[result + 4] = count, left, other, otherLeft
end
return results`;
const RESULTS_OF_REQUEST = 4;

/** KEYS: counter. */
const REFUND_SCRIPT = `
local count = tonumber(redis.call('GET', KEYS[1]) or '0')
return count > 0 and redis.call('DECR', KEYS[1]) or 0`;

/** Requests in one command at most, so that none blocks Redis for long. */
const BATCH_MAX = 64;

interface ScriptedRedis extends Redis {
  latchkeyHit(key: string, windowMs: number): Promise<[number, number]>;
  latchkeyHitBoth(keys: number, ...args: Array<string | number>): Promise<number[]>;
  latchkeyRefund(key: string): Promise<number>;
}

/**
 * Requests that share a command, which costs most of a request: those of one turn of the event loop
 * or, with a wait, of a few milliseconds. They go on together, so they share calls and statements.
 */
interface Batch {
  readonly keys: string[];
  readonly args: Array<string | number>;
  size: number;
  /** Set once it waits for more requests than those of its turn. */
  timer?: NodeJS.Timeout;
  readonly results: PromiseWithResolvers<number[] | undefined>;
}

/** Counts events, allowed or not, in Redis; in this process while Redis is away. */
export class RateLimiter {
  readonly #redis: ScriptedRedis;
  readonly #local = new LocalCounters();
  readonly #logger: Logger;
  readonly #batchWaitMs: number;
  #batch: Batch | undefined;
  /** Size of recent batches, which falls by one with each smaller batch. */
  #usualSize = 1;
  #pausedUntil = 0;

  /** @param batchWaitMs longest wait of a request for as many others as lately shared a command */
  constructor(redis: Redis, logger: Logger, batchWaitMs = 0) {
    redis.defineCommand('latchkeyHit', { lua: HIT_SCRIPT, numberOfKeys: 1 });
    redis.defineCommand('latchkeyHitBoth', { lua: HIT_BOTH_SCRIPT });
    redis.defineCommand('latchkeyRefund', { lua: REFUND_SCRIPT, numberOfKeys: 1 });
    this.#redis = redis as ScriptedRedis;
    this.#logger = logger;
    this.#batchWaitMs = batchWaitMs;
  }

  /**
   * Counts a request for two limits in one round trip.
   *
   * @param epoch of the cached principal that the second limit is for
   * @returns the second state is undefined if the first limit rejects the request, or if the epoch is
   *   not known to be current
   */
  async hitBoth(first: Count, second: Count, epoch?: Epoch): Promise<readonly [LimitState, LimitState?]> {
    const results = this.#redis.isCluster ? undefined : await this.#hitInBatch(first, second, epoch);
    if (results) return results;
    // In a cluster the keys are on different nodes, so that no script has all of them.
    const current = epoch && this.#ask((redis) => redis.get(epoch.epochKey));
    const state = await this.hit(first);
    return state.allowed && (await current) === epoch?.epoch ? [state, await this.hit(second)] : [state];
  }

  async #hitInBatch(first: Count, second: Count, epoch?: Epoch): Promise<[LimitState, LimitState?] | undefined> {
    const batch = this.#openBatch();
    batch.keys.push(keyOf(first), epoch?.epochKey ?? keyOf(first), keyOf(second));
    batch.args.push(first.limit.windowMs, first.limit.max, epoch?.epoch ?? '', second.limit.windowMs);
    const start = batch.size * RESULTS_OF_REQUEST;
    batch.size += 1;
    if (batch.size === BATCH_MAX) this.#send(batch);
    else if (batch.timer && batch.size === this.#usualSize) setImmediate(() => this.#send(batch));
    const results = await batch.results.promise;
    if (!results) return undefined;
    const [count = 0, resetMs = 0, counted = -1, countedResetMs = 0] = results.slice(start, start + RESULTS_OF_REQUEST);
    const state = toLimitState(first.limit, count, resetMs);
    return counted < 0 ? [state] : [state, toLimitState(second.limit, counted, countedResetMs)];
  }

  async hit(count: Count): Promise<LimitState> {
    const counted = await this.#ask((redis) => redis.latchkeyHit(keyOf(count), count.limit.windowMs));
    return counted ? toLimitState(count.limit, counted[0], counted[1]) : this.#local.hit(count);
  }

  async refund(count: Count): Promise<void> {
    const done = await this.#ask((redis) => redis.latchkeyRefund(keyOf(count)));
    if (done === undefined) this.#local.refund(count);
  }

  #openBatch(): Batch {
    if (this.#batch) return this.#batch;
    const batch: Batch = { keys: [], args: [], size: 0, results: Promise.withResolvers<number[] | undefined>() };
    this.#batch = batch;
    setImmediate(() => {
      if (batch.size >= this.#usualSize || this.#batchWaitMs === 0) this.#send(batch);
      else batch.timer = setTimeout(() => this.#send(batch), this.#batchWaitMs);
    });
    return batch;
  }

  #send(batch: Batch): void {
    if (this.#batch !== batch) return;
    this.#batch = undefined;
    clearTimeout(batch.timer);
    this.#usualSize = Math.max(batch.size, this.#usualSize - 1);
    const { keys, args, results } = batch;
    results.resolve(this.#ask((redis) => redis.latchkeyHitBoth(keys.length, ...keys, ...args)));
  }

  /** Undefined if Redis cannot be asked. */
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

/** Counters in memory. Beyond the limit, the least recently used are dropped. */
const LOCAL_COUNTERS_MAX = 100_000;

class LocalCounters {
  readonly #counters = new LRUCache<string, { count: number; readonly endsAt: number }>({ max: LOCAL_COUNTERS_MAX });

  hit(event: Count): LimitState {
    const now = performance.now();
    let counter = this.#counters.get(keyOf(event));
    if (!counter || counter.endsAt <= now) {
      counter = { count: 0, endsAt: now + event.limit.windowMs };
      this.#counters.set(keyOf(event), counter);
    }
    counter.count += 1;
    return toLimitState(event.limit, counter.count, counter.endsAt - now);
  }

  refund(event: Count): void {
    const counter = this.#counters.get(keyOf(event));
    if (counter && counter.count > 0) counter.count -= 1;
  }
}
