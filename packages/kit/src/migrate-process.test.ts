import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { createEmptyTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { startTcpProxy } from '@latchkey/testkit/tcp-proxy';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';

const PROGRAM = fileURLToPath(new URL('./testing/migrate-command-process.ts', import.meta.url));

let database: TestDatabase;
beforeEach(async () => {
  database = await createEmptyTestDatabase();
  return () => database.drop();
});

function run(url: string) {
  const child = spawn(process.execPath, [PROGRAM], { env: { DATABASE_URL: url }, stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const text = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (chunk: string) => {
      text[name] += chunk;
    });
  }
  return { text, ended: new Promise<number | null>((resolve) => child.once('close', resolve)) };
}

describe('the command migrate', { timeout: 30_000 }, () => {
  it.each([
    ['password', { password: 'wrong-password' }],
    ['database', { pathname: '/no_such_database' }],
  ])('ends at once with one line where the %s is wrong', async (_title, wrong) => {
    const { text, ended } = run(Object.assign(new URL(database.url), wrong).href);
    expect(await ended).toBe(1);
    expect(text.stderr).toBe('');
    expect(
      text.stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toMatchObject([
      { level: 60, service: 'test', msg: 'migration failed', err: { code: expect.stringMatching(/^(28P01|3D000)$/) } },
    ]);
    expect(text.stdout).not.toContain('wrong-password');
  });

  it('waits for a database that is away', async () => {
    const proxy = await startTcpProxy(database.url);
    onTestFinished(() => proxy.close());
    await proxy.cut();
    const { text, ended } = run(proxy.url);
    await eventually(() => text.stdout.includes('waiting for the database'), { timeoutMs: 15_000 });
    await proxy.restore();
    expect([await ended, text.stderr]).toEqual([0, '']);
    expect(text.stdout).toContain('Applied 20250101_a.\n');
  });
});
