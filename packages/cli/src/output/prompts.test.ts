import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import type { Io } from '../program/io.ts';
import { createPrompts } from './prompts.ts';

it.each(['\u0003', '\u0004'])('rejects a question that is answered with %j', async (key) => {
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => undefined });
  const stderr = Object.assign(new PassThrough(), { isTTY: true, columns: 80, rows: 24 });
  const { confirm } = createPrompts({ stdin, stderr } as unknown as Io);
  const answer = confirm({ message: 'Delete it?', option: '--yes', what: 'a confirmation' });
  setImmediate(() => stdin.write(key));
  await expect(answer).rejects.toThrow('Cancelled. Nothing was changed.');
});

it('asks on one line where the terminal says that it has no columns', async () => {
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => undefined });
  const stderr = Object.assign(new PassThrough(), { isTTY: true, columns: 0, rows: 0 });
  const answer = createPrompts({ stdin, stderr } as unknown as Io).confirm({
    message: 'Delete it?',
    option: '--yes',
    what: 'a confirmation',
  });
  setImmediate(() => stdin.write('y'));
  expect(await answer).toBe(true);
  expect(String(stderr.read())).toContain('Delete it?');
});
