import { join } from 'node:path';
import { eventually } from '@latchkey/testkit/eventually';
import { programEnv } from '@latchkey/testkit/process/program-env';
import { spawn } from '@lydell/node-pty';
import { beforeEach, expect, inject, it, onTestFinished } from 'vitest';
import { PASSWORD, unique } from '../client/caller.ts';
import { openDocumentShell, readCommandBlocks } from '../client/document-shell.ts';
import { createDataDir } from '../instance/launcher-process.ts';

const { baseUrl, realtimeUrl } = inject('latchkeyInstance');
const TIMEOUT = { timeoutMs: 60_000 };
/** The start of npx takes longer than the command. */
const LATCHKEY = 'node_modules/.bin/latchkey';
const PAUSED = '#1  latchkey.application.paused  {"status":"paused"}';

let folder: string;
let env: NodeJS.ProcessEnv;
/** The first session of README, on the instance of the tests and with a new account. */
let session: string;
beforeEach(async () => {
  const { path, remove } = await createDataDir();
  onTestFinished(remove);
  folder = path;
  env = {
    ...programEnv(),
    HOME: folder,
    XDG_CONFIG_HOME: join(folder, 'config'),
    LATCHKEY_REALTIME_URL: realtimeUrl,
    npm_config_update_notifier: 'false',
  };
  const name = unique('ada-');
  session = (readCommandBlocks().get('README.md')?.[1] ?? '')
    .replace('http://localhost:8080', baseUrl)
    .replace('--username ada --email ada@', `--username ${name} --email ${name}@`)
    .replaceAll('/tmp/', `${folder}/`)
    .replaceAll('npx latchkey', LATCHKEY);
  expect(session).toContain(`--username ${name}`);
});

it('runs the first session of README on a terminal of 80 columns: it asks, and shows progress', async () => {
  const checkout = await openDocumentShell(folder, env);
  await checkout.stop();
  const terminal = spawn('sh', ['-i'], {
    cols: 80,
    rows: 40,
    cwd: join(folder, 'checkout'),
    env: { ...env, PS1: 'ready> ', TERM: 'xterm' },
  });
  const ended = new Promise<void>((resolve) => terminal.onExit(() => resolve()));
  onTestFinished(async () => {
    terminal.kill('SIGKILL');
    await ended;
  });
  let printed = '';
  terminal.onData((text) => {
    printed += text;
  });
  const waitFor = (text: string) => eventually(() => printed.includes(text) || Promise.reject(new Error(printed)), TIMEOUT);
  const type = (line: string) => {
    printed = '';
    terminal.write(`${line}\r`);
  };
  const prompt = 'ready> ';
  await waitFor(prompt);
  for (const line of session.split('\n').filter((text) => text !== '' && !text.startsWith('#'))) {
    type(line);
    if (line.includes('latchkey login')) {
      await waitFor('Password');
      type(PASSWORD);
      await waitFor('again');
      type(PASSWORD);
    } else if (line.includes('latchkey listen')) {
      await waitFor(PAUSED);
      terminal.write('\u0003');
    }
    await waitFor(prompt);
    if (line.includes('latchkey login')) expect(printed).not.toContain(PASSWORD);
    if (line.includes('latchkey files upload')) expect(printed).toContain('  release.txt  uploaded, 10 B');
    if (line.includes('latchkey files list')) expect(printed).toContain('\u001b[2mNAME ');
  }
  type(`${LATCHKEY} apps delete "Difference Engine"; echo "code $?"`);
  await waitFor('Delete Difference Engine?');
  terminal.write('\u001b[C');
  terminal.write('n');
  await waitFor('code 1');
  expect(printed).toContain('Not confirmed. Nothing was changed.');
});
