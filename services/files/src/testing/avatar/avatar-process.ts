import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

const PROGRAM = fileURLToPath(new URL('./stuck-worker.ts', import.meta.url));

/** Where a worker works, and where it gets stuck; before it has told identity unless something else is said. */
export interface StuckWorker {
  readonly url: string;
  readonly objectsDir: string;
  readonly redisUrl: string;
  readonly stuckAt?: 'recording' | 'decoding';
}

/** A worker in a process of its own that takes an avatar and never ends it. Resolves once it works. */
export async function startAvatarProcess({ url, objectsDir, redisUrl, stuckAt = 'recording' }: StuckWorker) {
  const child = spawn(process.execPath, [PROGRAM, url, objectsDir, redisUrl, stuckAt], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let said = '';
  const heard: Array<() => void> = [];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
    for (const check of heard) check();
  });
  const says = (word: string) =>
    new Promise<void>((resolve, reject) => {
      const check = () => void (said.includes(word) && resolve());
      heard.push(check);
      child.once('exit', () => reject(new Error(`The worker ended before it said ${word}: ${said}`)));
    });
  const [toldIdentity, took] = [says('recording'), says('decoding')];
  for (const promise of [toldIdentity, took]) promise.catch(() => undefined);
  await says('working');
  return { toldIdentity, took, kill: () => void child.kill('SIGKILL') };
}
