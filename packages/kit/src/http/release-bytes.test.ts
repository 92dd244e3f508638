import { expect, it } from 'vitest';
import { releaseBytes } from './release-bytes.ts';

it('takes the memory of a chunk that has it to itself', () => {
  const chunk = new Uint8Array(65_536);
  releaseBytes(chunk);
  expect([chunk.byteLength, chunk.buffer.detached]).toEqual([0, true]);
});

it('leaves memory that others may use', () => {
  const shared = new Uint8Array(65_536).fill(7);
  for (const part of [shared.subarray(0, 10), shared.subarray(10)]) releaseBytes(part);
  const pooled = Buffer.from('pooled');
  releaseBytes(pooled);
  expect([shared.byteLength, shared[9], shared[10], pooled.toString()]).toEqual([65_536, 7, 7, 'pooled']);
  expect(() => releaseBytes(new Uint8Array(new SharedArrayBuffer(8)))).not.toThrow();
});
