import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { StartError } from './start-error.ts';
import { waitUntil } from './wait-until.ts';

const TIMEOUT_MS = 2_000;

/** How a Redis on 127.0.0.1 is reached. */
export interface RedisAddress {
  readonly port: number;
  readonly password: string;
}

/** The URL of the Redis that another process runs on a data folder; undefined while none runs. */
export async function findRunningRedis(dataDir: string): Promise<string | undefined> {
  const address = await readAddress(join(dataDir, 'redis'));
  return address && (await pingRedis(address)) ? redisUrl(address) : undefined;
}

export function redisUrl({ port, password }: RedisAddress): string {
  return `redis://:${password}@127.0.0.1:${port}`;
}

/** Whether it answers, and does not load its data any more. */
export async function pingRedis(address: RedisAddress): Promise<boolean> {
  return (await ask(address, 'PING'))?.startsWith('+PONG') ?? false;
}

/**
 * Ends the Redis that an earlier run left on a folder. Only that one accepts the password of its
 * configuration.
 */
export async function endLeftoverRedis(dir: string, onProgress?: (line: string) => void): Promise<void> {
  const address = await readAddress(dir);
  const askPid = async () => Number(/process_id:(\d+)/.exec((address && (await ask(address, 'INFO server'))) ?? '')?.[1]);
  const pid = await askPid();
  if (!pid) return;
  onProgress?.(`Ending the Redis (pid ${pid}) that an earlier run left behind.`);
  for (const [signal, timeoutMs] of [
    ['SIGTERM', 15_000],
    ['SIGKILL', 5_000],
  ] as const) {
    try {
      process.kill(pid, signal);
    } catch (err) {
      if ((err as NodeJS.ErrnoException).code === 'ESRCH') return;
      throw new StartError(`A Redis (pid ${pid}) of an earlier run uses the data as another user: end it first.`, { cause: err });
    }
    if (await waitUntil(async () => !(await askPid()), { timeoutMs })) return;
  }
  throw new StartError(`A Redis (pid ${pid}) of an earlier run does not end: end it first.`);
}

async function readAddress(dir: string): Promise<RedisAddress | undefined> {
  const config = await readFile(join(dir, 'redis.conf'), 'utf8').catch(() => '');
  const [, port] = /^port (\d+)$/m.exec(config) ?? [];
  const [, password] = /^requirepass (\S+)$/m.exec(config) ?? [];
  return port === undefined || password === undefined ? undefined : { port: Number(port), password };
}

/** @returns the reply to a command; undefined where nothing answers or takes the password */
function ask({ port, password }: RedisAddress, command: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, timeout: TIMEOUT_MS });
    let reply = '';
    socket.once('connect', () => socket.write(`AUTH ${password}\r\n${command}\r\nQUIT\r\n`));
    socket.setEncoding('latin1').on('data', (text: string) => {
      reply += text;
    });
    socket.once('timeout', () => socket.destroy());
    socket.once('error', () => {});
    socket.once('close', () => resolve(reply.startsWith('+OK\r\n') ? reply.slice('+OK\r\n'.length) : undefined));
  });
}
