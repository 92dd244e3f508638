import type { Redis } from './redis.ts';

const SAMPLE_MS = 5_000;
/** Time in which every node has added its clients to a sample that began. */
const COMPLETE_MS = 2_500;
/** Longer than a sample is read. A million applications take some 100 MB of each. */
const LIFETIME_MS = 2 * SAMPLE_MS;

/** KEYS: sample. ARGV: lifetime in ms, then ids and counts. Returns the sums so far. */
const ADD_SCRIPT = `
local sums = {}
for i = 2, #ARGV, 2 do sums[#sums + 1] = redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1]) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return sums`;

/**
 * Number of the sample that a time belongs to. All nodes count the same sample at the same time, so
 * that a client which moves from one node to another counts once.
 */
const sampleAt = (time: Date): number => Math.floor(time.getTime() / SAMPLE_MS);

const readableAt = (time: Date) => sampleAt(new Date(time.getTime() - COMPLETE_MS));

/** The samples that nodes count in at a time: the one that is read, and the newest. */
export const openSamplesAt = (time: Date): readonly number[] => [...new Set([readableAt(time), sampleAt(time)])];

const keyOf = (sample: number) => `latchkey:live-clients:${sample}`;

/**
 * Adds live clients of this node to a sample, or differences since it did; returns the sums of all
 * nodes so far.
 */
export async function addLiveClients(
  redis: Pick<Redis, 'eval'>,
  sample: number,
  counts: ReadonlyArray<readonly [applicationId: string, clients: number]>,
): Promise<number[]> {
  return (await redis.eval(ADD_SCRIPT, 1, keyOf(sample), LIFETIME_MS, ...counts.flat())) as number[];
}

/** The live clients of an application on all nodes, as of the last count of each. */
export async function readLiveClients(redis: Pick<Redis, 'hget'>, applicationId: string, now = new Date()): Promise<number> {
  return Number(await redis.hget(keyOf(readableAt(now)), applicationId));
}
