import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { eventually } from '@latchkey/testkit/eventually';
import { findFreePort } from '@latchkey/testkit/free-port';
import { describe, expect, it, onTestFinished } from 'vitest';

const PROGRAM = fileURLToPath(new URL('../testing/run-service-process.ts', import.meta.url));
const SERVICE_CREDENTIALS = 'a-credential-of-the-tests-of-a-process';

function run(kind: string, env: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, [PROGRAM, kind], {
    env: { PATH: process.env.PATH, HOST: '127.0.0.1', SERVICE_CREDENTIALS, ...env },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve));
  const listening = () => eventually(() => output.includes('"listening"'), { timeoutMs: 15_000 });
  const words = () => output.split('\n').filter((line) => /^[a-z]+$/.test(line));
  return { child, exited, listening, words, output: () => output };
}

describe('a service as a process', () => {
  it.each([
    ['migrates before it starts', 'with-database', {}, ['migrated', 'started', 'stopped']],
    ['does not migrate if told so', 'with-database', { MIGRATE_ON_START: 'false' }, ['started', 'stopped']],
    ['reads no setting of a database without one', 'without', { MIGRATE_ON_START: 'x' }, ['started', 'stopped']],
  ])('%s', async (_title, kind, env, words) => {
    const METRICS_PORT = String(await findFreePort());
    const service = run(kind, { ...env, METRICS_PORT, METRICS_TOKEN: 'a-token-that-has-thirty-two-characters' });
    await service.listening();
    expect((await fetch(`http://127.0.0.1:${METRICS_PORT}/readyz`)).status).toBe(200);
    service.child.kill('SIGTERM');
    expect(await service.exited).toBe(0);
    expect(service.words()).toEqual(words);
  });

  it('ends with the problems of its settings', async () => {
    const service = run('with-database', { MIGRATE_ON_START: 'x', PORT: 'y' });
    expect(await service.exited).toBe(1);
    expect(service.output()).toMatch(/^Wrong settings:\n {2}PORT must be .*\n {2}MIGRATE_ON_START must be true or false\n$/);
  });
});
