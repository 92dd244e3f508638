import { once } from 'node:events';
import { mkdir, rm, stat } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { StartError } from './start-error.ts';

const HOLDER_TIMEOUT_MS = 1_000;
/** A holder that ends between the two calls is rare; more than this is another problem. */
const TRIES_MAX = 20;

/**
 * Locks a data folder for this process. The lock is a listening socket, which the kernel closes
 * however the process ends. Device and inode name it, as several paths may lead to the folder.
 *
 * @throws {StartError} when another process holds the lock; names its pid
 */
export async function acquireDataDirLock(dataDir: string) {
  await mkdir(dataDir, { recursive: true, mode: 0o711 });
  const { dev, ino } = await stat(dataDir, { bigint: true });
  const name = `latchkey-${dev}-${ino}`;
  // Linux has names without a file. Elsewhere a killed process leaves a file.
  const isAbstract = process.platform === 'linux';
  const path = isAbstract ? `\0${name}` : join(tmpdir(), `${name}.sock`);
  for (let tries = 1; ; tries += 1) {
    const server = createServer((socket) => socket.on('error', () => {}).end(String(process.pid)));
    try {
      await once(server.listen({ path }).unref(), 'listening');
      return { release: () => new Promise<void>((resolve) => server.close(() => resolve())) };
    } catch (err) {
      if ((err as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw err;
    }
    const pid = await readHolder(path);
    if (pid === undefined && tries < TRIES_MAX) {
      if (!isAbstract) await rm(path, { force: true });
      continue;
    }
    throw new StartError(
      `Another Latchkey (pid ${pid ?? 'unknown'}) is using ${dataDir}: stop it first, or set DATA_DIR to another folder.`,
    );
  }
}

/** @returns undefined where no process holds the lock */
async function readHolder(path: string): Promise<string | undefined> {
  const socket = connect({ path });
  socket.setTimeout(HOLDER_TIMEOUT_MS, () => socket.destroy());
  try {
    await once(socket, 'connect');
  } catch {
    return undefined;
  }
  return text(socket).catch(() => 'unknown');
}
