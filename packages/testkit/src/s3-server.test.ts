import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { eventually } from './eventually.ts';
import { startS3Server } from './s3-server.ts';

const MODULE = fileURLToPath(new URL('./s3-server.ts', import.meta.url));

const isUp = (endpoint: string) =>
  fetch(endpoint).then(
    () => true,
    () => false,
  );

describe('the S3 server for tests', () => {
  it('ends with the process that started it, also when that is killed', async ({ skip }) => {
    const script = `import { startS3Server } from ${JSON.stringify(MODULE)}; console.log(JSON.stringify(await startS3Server())); setInterval(() => {}, 60_000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    const [line] = await once(child.stdout, 'data');
    const server = JSON.parse(String(line)) as { endpoint: string; unavailable?: string };
    if (server.unavailable) return skip(server.unavailable);
    expect(await isUp(server.endpoint)).toBe(true);
    child.kill('SIGKILL');
    await eventually(async () => !(await isUp(server.endpoint)));
  }, 90_000);

  it('says why there is none', async () => {
    vi.stubEnv('PATH', '/nonexistent');
    onTestFinished(() => void vi.unstubAllEnvs());
    const server = await startS3Server({ cacheDir: '/dev/null/nowhere' });
    expect(server).toEqual({ unavailable: expect.stringMatching(/^no S3 server of the distribution: ./) });
  });
});
