import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const TIMEOUT_MS = 180_000;

/**
 * Prepares apt with package lists and a cache below a folder of ours: it changes nothing of the
 * system's, and works for an ordinary user and where the system's lists are empty.
 */
export async function prepareApt(dir: string) {
  await mkdir(join(dir, 'lists', 'partial'), { recursive: true });
  await mkdir(join(dir, 'cache', 'archives', 'partial'), { recursive: true });
  const settings = [
    `Dir::State::lists=${join(dir, 'lists')}`,
    `Dir::Cache=${join(dir, 'cache')}`,
    // As root, apt would fetch as another user, who can't enter our folder.
    'APT::Sandbox::User=root',
    'Acquire::Retries=2',
    'Acquire::http::Timeout=20',
    'Acquire::https::Timeout=20',
    'Acquire::Languages=none',
  ].flatMap((setting) => ['-o', setting]);
  const env = { ...process.env, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' };
  return (args: readonly string[], cwd: string) =>
    run('apt-get', [...settings, '-q', ...args], { cwd, env, maxBuffer: 16 * 1024 * 1024, timeout: TIMEOUT_MS });
}

export function explainApt(err: unknown): string {
  const { code, stderr, message } = err as { code?: unknown; stderr?: string; message: string };
  if (code === 'ENOENT') return 'there is no apt here';
  const complaint = stderr?.split('\n').find((line) => line.startsWith('E: '));
  return (complaint?.slice(3) ?? message.split('\n')[0] ?? 'unknown reason').replace(/\.$/, '');
}
