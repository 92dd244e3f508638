/** Starts a server as a launcher would and stays, for tests that kill the launcher: `run-servers.ts postgres|redis|lock <dir>`. */
import { fileURLToPath } from 'node:url';
import { acquireDataDirLock } from '../data-dir-lock.ts';
import { startPostgres } from '../postgres.ts';
import { startRedis } from '../redis.ts';

/** That of `npm start`, so that a machine without Redis downloads it once. */
const CACHE_DIR = fileURLToPath(new URL('../../../../node_modules/.cache/latchkey', import.meta.url));

const [, , what, dataDir = ''] = process.argv;
// Keeps the process alive, whatever else does.
setInterval(() => {}, 60_000);

async function start(): Promise<{ pid: number; url: string }> {
  if (what === 'postgres') {
    const postgres = await startPostgres({ dataDir, durable: false });
    return { pid: postgres.pid, url: postgres.url() };
  }
  if (what === 'redis') return startRedis({ dataDir, cacheDir: CACHE_DIR });
  await acquireDataDirLock(dataDir);
  return { pid: process.pid, url: '' };
}

const { pid, url } = await start();
process.stdout.write(`${JSON.stringify({ pid, url })}\n`);
