import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { expect, it, onTestFinished } from 'vitest';

const PROGRAM = fileURLToPath(new URL('../testing/migrate-command-process.ts', import.meta.url));

it('the command migrate brings the schema up to date; for a wrong database it logs one line and fails', async () => {
  const database = await createEmptyTestDatabase();
  onTestFinished(() => database.drop());
  const run = (url: string) =>
    new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
      execFile(process.execPath, [PROGRAM], { env: { DATABASE_URL: url } }, (err, stdout, stderr) =>
        resolve({ code: err?.code ?? 0, stdout, stderr }),
      );
    });
  expect(await run(database.url)).toEqual({ code: 0, stdout: 'Applied 20250101_a.\n', stderr: '' });
  expect(await run(database.url)).toMatchObject({ stdout: 'The schema is up to date.\n' });
  const { code, stdout } = await run(Object.assign(new URL(database.url), { password: 'wrong-password' }).href);
  expect(JSON.parse(stdout)).toMatchObject({ level: 60, service: 'test', msg: 'migration failed', err: { code: '28P01' } });
  expect([code, stdout.includes('wrong-password')]).toEqual([1, false]);
}, 30_000);
