import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { findFreePort, keepFree } from './free-port.ts';

it('finds another port each time, and none that is listened on or reserved', async () => {
  const first = await findFreePort();
  const server = createServer().listen(first + 1, '127.0.0.1');
  // Another process may listen there already.
  await once(server, 'listening').catch(() => undefined);
  keepFree(first + 2);
  const found = [await findFreePort(), await findFreePort()];
  expect(new Set([first, first + 1, first + 2, ...found]).size).toBe(5);
  server.close();
});

it('finds other ports in another process that is started at the same time', async () => {
  const module = JSON.stringify(fileURLToPath(new URL('./free-port.ts', import.meta.url)));
  const program = `const { findFreePort } = await import(${module});
    for (let i = 0; i < 40; i += 1) console.log(await findFreePort());`;
  const run = () => promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
  const found = (await Promise.all([run(), run()])).flatMap(({ stdout }) => stdout.trim().split('\n').map(Number));
  expect(new Set(found).size).toBe(80);
  expect(Math.max(...found)).toBeLessThan(32_768);
});
