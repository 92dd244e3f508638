import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { openEmptyDatabase } from '@latchkey/testkit/postgres/database';
import { programEnv } from '@latchkey/testkit/process/program-env';
import { expect, it, onTestFinished, vi } from 'vitest';

const PROGRAM = fileURLToPath(new URL('../testing/migrate-command-process.ts', import.meta.url));

it('the command migrate brings the schema up to date, and says what it did', async () => {
  const database = await openEmptyDatabase();
  onTestFinished(() => void vi.unstubAllEnvs());
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  onTestFinished(() => write.mockRestore());
  vi.stubEnv('DATABASE_URL', database.url);
  const { command } = await import('../testing/migrate-command-process.ts');
  await command.run();
  await command.run();
  expect(write.mock.calls.flat()).toEqual(['Applied 20250101_a.\n', 'The schema is up to date.\n']);
});

it('the command migrate logs one line without the password, and fails, where the database rejects it', async () => {
  const database = await openEmptyDatabase();
  const DATABASE_URL = Object.assign(new URL(database.url), { password: 'wrong-password' }).href;
  const [code, stdout] = await new Promise<[unknown, string]>((resolve) => {
    execFile(process.execPath, [PROGRAM], { env: { ...programEnv(), DATABASE_URL } }, (err, output) =>
      resolve([err?.code, output]),
    );
  });
  expect(JSON.parse(stdout)).toMatchObject({ level: 60, service: 'test', msg: 'migration failed', err: { code: '28P01' } });
  expect([code, stdout.includes('wrong-password')]).toEqual([1, false]);
}, 30_000);
