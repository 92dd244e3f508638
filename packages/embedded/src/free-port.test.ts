import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { findFreePort, keepFree } from './free-port.ts';

it('names another port each time, and none that is listened on', async () => {
  const first = await findFreePort();
  const server = createServer().listen(first + 1, '127.0.0.1');
  // Where somebody else listens there, the better.
  await once(server, 'listening').catch(() => undefined);
  const found = [await findFreePort(), await findFreePort()];
  expect(found).not.toContain(first + 1);
  expect(new Set([first, ...found]).size).toBe(3);
  server.close();
});

it('names none that is to be kept free', async () => {
  const first = await findFreePort();
  keepFree(first + 1, first + 2);
  const found = [await findFreePort(), await findFreePort()];
  expect(found).not.toContain(first + 1);
  expect(found).not.toContain(first + 2);
});

it('names other ports in another process that is started at the same time', async () => {
  const program = `const { findFreePort } = await import(${JSON.stringify(fileURLToPath(new URL('./free-port.ts', import.meta.url)))});
    for (let i = 0; i < 40; i += 1) console.log(await findFreePort());`;
  const run = () => promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
  const found = (await Promise.all([run(), run(), run(), run()])).flatMap(({ stdout }) => stdout.trim().split('\n').map(Number));
  expect(new Set(found).size).toBe(160);
  expect(Math.max(...found)).toBeLessThan(32_768);
});
