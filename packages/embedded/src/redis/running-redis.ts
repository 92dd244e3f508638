import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { endLeftover, type StopStep } from '../process/processes.ts';

const TIMEOUT_MS = 2_000;
const STOP_STEPS: readonly StopStep[] = [
  ['SIGTERM', 15_000],
  ['SIGKILL', 5_000],
];

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

/** True if it answers, and has loaded its data. */
export async function pingRedis(address: RedisAddress): Promise<boolean> {
  return (await send(address, 'PING'))?.startsWith('+PONG') ?? false;
}

/**
 * Ends the Redis that an earlier run left on a folder. Only that one accepts the password of its
 * configuration.
 */
export async function endLeftoverRedis(dir: string, onProgress?: (line: string) => void): Promise<void> {
  const address = await readAddress(dir);
  if (!address) return;
  const readPid = async () => Number(/process_id:(\d+)/.exec((await send(address, 'INFO server')) ?? '')?.[1]);
  const pid = await readPid();
  if (pid) await endLeftover('Redis', pid, STOP_STEPS, async () => !(await readPid()), onProgress);
}

async function readAddress(dir: string): Promise<RedisAddress | undefined> {
  const config = await readFile(join(dir, 'redis.conf'), 'utf8').catch(() => '');
  const [, port] = /^port (\d+)$/m.exec(config) ?? [];
  const [, password] = /^requirepass (\S+)$/m.exec(config) ?? [];
  return port === undefined || password === undefined ? undefined : { port: Number(port), password };
}

/** @returns the reply; undefined without a server or with a wrong password */
function send({ port, password }: RedisAddress, command: string): Promise<string | undefined> {
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
