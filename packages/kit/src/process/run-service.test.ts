import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { eventually } from '@latchkey/testkit/eventually';
import { findFreePort } from '@latchkey/testkit/network/free-port';
import { programEnv } from '@latchkey/testkit/process/program-env';
import { expect, it, onTestFinished, vi } from 'vitest';

const PROGRAM = fileURLToPath(new URL('../testing/run-service-process.ts', import.meta.url));
const SERVICE_CREDENTIALS = 'a-credential-of-the-tests-of-a-process';

it('a service as a process migrates before it starts, becomes ready, and stops in order', async () => {
  const METRICS_PORT = String(await findFreePort());
  const env = { HOST: '127.0.0.1', SERVICE_CREDENTIALS, METRICS_PORT, METRICS_TOKEN: 'a-token-that-has-thirty-two-characters' };
  const child = spawn(process.execPath, [PROGRAM], { env: { ...programEnv(), ...env } });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve));
  await eventually(() => output.includes('"listening"'), { timeoutMs: 30_000 });
  expect((await fetch(`http://127.0.0.1:${METRICS_PORT}/readyz`)).status).toBe(200);
  child.kill('SIGTERM');
  expect(await exited).toBe(0);
  expect(output.match(/^[a-z]+$/gm)).toEqual(['migrated', 'started', 'stopped']);
}, 60_000);

it('a service as a process ends with the problems of its settings', async () => {
  for (const [name, value] of Object.entries({ SERVICE_CREDENTIALS, MIGRATE_ON_START: 'x', PORT: 'y' })) vi.stubEnv(name, value);
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  vi.spyOn(process, 'exit').mockImplementation((code) => {
    throw new Error(`ended with ${code}`);
  });
  onTestFinished(() => void vi.unstubAllEnvs().restoreAllMocks());
  await expect(import('../testing/run-service-process.ts')).rejects.toThrow('ended with 1');
  const problems = /^Wrong settings:\n {2}PORT must be .*\n {2}MIGRATE_ON_START must be true or false\n$/;
  expect(write.mock.calls).toEqual([[expect.stringMatching(problems)]]);
});
