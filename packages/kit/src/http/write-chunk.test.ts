import { Writable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { releaseBytes, writeChunk } from './write-chunk.ts';

/** A connection that takes all that is written to it, and counts the chunks. */
function createTarget() {
  const seen = { chunks: 0 };
  const target = new Writable({
    write: (_chunk, _encoding, callback) => {
      seen.chunks += 1;
      callback();
    },
  });
  return { seen, target };
}

it('writes at most four chunks in a turn of the event loop, each body in its turn', async () => {
  const bodies = Array.from({ length: 10 }, createTarget);
  const send = async (target: Writable) => {
    for (let i = 0; i < 20; i += 1) await writeChunk(target, Buffer.alloc(1));
  };
  const sent = Promise.all(bodies.map(({ target }) => send(target)));
  const total = () => bodies.reduce((sum, { seen }) => sum + seen.chunks, 0);
  for (let turns = 1; total() < 200; turns += 1) {
    await turn();
    expect(total()).toBeLessThanOrEqual(4 * (turns + 1));
    const counts = bodies.map(({ seen }) => seen.chunks);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
  }
  await sent;
});

it('frees the memory of a chunk once it is written, unless others share it', async () => {
  const [own, shared] = [new Uint8Array(10), new Uint8Array(10).fill(7)];
  for (const chunk of [own, shared.subarray(0, 5), Buffer.from('pooled')]) await writeChunk(createTarget().target, chunk);
  expect([own.byteLength, shared.byteLength, shared[0]]).toEqual([0, 10, 7]);
  expect(() => releaseBytes(new Uint8Array(new SharedArrayBuffer(8)))).not.toThrow();
});

it('ends when the connection is closed while a chunk is under way, or before', async () => {
  const target = new Writable({ write: () => undefined });
  target.on('error', () => undefined);
  const writing = writeChunk(target, Buffer.alloc(1));
  await turn();
  target.destroy();
  await expect(writing).rejects.toThrow();
  await expect(writeChunk(target, Buffer.alloc(1))).rejects.toThrow();
});
