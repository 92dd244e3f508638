import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from '@latchkey/testkit/eventually';
import { expect, inject, it, onTestFinished } from 'vitest';
import { unique } from '../testing/caller.ts';

const LISTENER = fileURLToPath(new URL('../listen-main.ts', import.meta.url));
const { baseUrl, realtimeUrl } = inject('latchkeyInstance');

/** What the README says to paste, and the last lines that it promises. */
async function readSession() {
  const readme = await readFile(new URL('../../../../README.md', import.meta.url), 'utf8');
  const [, session = '', promised = ''] = /```sh\n(BASE=[\s\S]*?)```[\s\S]*?```\n([\s\S]*?)```/.exec(readme) ?? [];
  // Every instance of the tests has other addresses, and accounts of other tests.
  const replacements = [
    ['http://localhost:8080', baseUrl],
    ['"ada"', `"${unique('ada-')}"`],
    ['ada@example.com', `${unique('ada-')}@example.com`],
    ['npm run -s listen --', `'${process.execPath}' '${LISTENER}'`],
  ] as const;
  const script = replacements.reduce((text, [from, to]) => {
    expect(text).toContain(from);
    return text.replaceAll(from, to);
  }, session);
  return { script, promised };
}

const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z(?= {2}#)/g;

it('the first session of the README does as it says, and leaves nothing where it was pasted', async () => {
  const { script, promised } = await readSession();
  const folder = await mkdtemp(join(tmpdir(), 'latchkey-readme-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const clone = join(folder, 'clone');
  await mkdir(clone);
  const env = { PATH: process.env.PATH, TMPDIR: folder, REALTIME_PORT: new URL(realtimeUrl).port };
  // With a group of its own, so that the listener ends with the shell.
  const shell = spawn('sh', ['-c', `{ ${script}\n} 2>&1`], {
    cwd: clone,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const closed = once(shell, 'close');
  onTestFinished(async () => {
    process.kill(-(shell.pid as number), 'SIGKILL');
    await closed;
  });
  let said = '';
  shell.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  await eventually(() => expect(said.replace(TIME, '').endsWith(promised.replace(TIME, ''))).toBe(true), { timeoutMs: 45_000 });
  // The others are kept in variables.
  expect(said.match(/"success":true/g)).toHaveLength((script.match(/^curl (?!.*grep)/gm) ?? []).length);
  expect(await readdir(clone)).toEqual([]);
});
