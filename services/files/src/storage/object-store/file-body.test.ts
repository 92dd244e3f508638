import { randomBytes } from 'node:crypto';
import { type FileHandle, mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '@latchkey/testkit/eventually';
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { createReadQueue, FileBody, READ_BYTES } from './file-body.ts';

const BYTES = randomBytes(READ_BYTES * 3 + 1);

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'latchkey-file-body-'));
  await writeFile(join(dir, 'file'), BYTES);
});
afterAll(() => rm(dir, { recursive: true }));

const openFile = () => open(join(dir, 'file'), 'r');

it('holds one chunk of at most 96 KiB, and reads the next when it is asked for', async () => {
  const handle = await openFile();
  const read = vi.spyOn(handle, 'read');
  const body = new FileBody(handle, createReadQueue());
  const chunks: Buffer[] = [];
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    await new Promise((resolve) => setImmediate(resolve));
    expect(read).toHaveBeenCalledTimes(chunks.length);
    expect(chunk.byteLength).toBeLessThanOrEqual(96 * 1024);
  }
  expect(Buffer.concat(chunks).equals(BYTES)).toBe(true);
  await eventually(() => body.closed);
});

it('lets two bodies of a store read at a time, and the others wait their turn', async () => {
  const answers: Array<() => void> = [];
  const body = (reads: ReturnType<typeof createReadQueue>) => {
    const handle = {
      read: () => new Promise((resolve) => answers.push(() => resolve({ bytesRead: 0 }))),
      close: async () => undefined,
    };
    return new FileBody(handle as unknown as FileHandle, reads);
  };
  const reads = createReadQueue();
  const bodies = Array.from({ length: 5 }, () => body(reads).resume());
  onTestFinished(() => bodies.forEach((one) => void one.destroy()));
  await eventually(() => answers.length > 0);
  for (const count of [2, 3, 4, 5]) {
    await new Promise((resolve) => setImmediate(resolve));
    expect(answers).toHaveLength(count);
    answers[count - 2]?.();
  }
  answers[4]?.();
  await eventually(() => bodies.every(({ closed }) => closed));
});

it('closes its file when it is destroyed while it waits, and leaves its turn to others', async () => {
  const reads = createReadQueue();
  const handles = await Promise.all([1, 2, 3, 4].map(openFile));
  const bodies = handles.map((handle) => new FileBody(handle, reads));
  for (const body of bodies) body.on('error', () => undefined).read();
  bodies[2]?.destroy(new Error('gone'));
  await eventually(() => bodies[3]?.bytesRead === READ_BYTES);
  expect([bodies[2]?.bytesRead, bodies[2]?.closed, handles[2]?.fd]).toEqual([0, true, -1]);
  for (const body of bodies) body.destroy();
  await eventually(() => bodies.every(({ closed }) => closed));
});
