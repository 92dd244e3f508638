import { once } from 'node:events';
import { connect } from 'node:net';
import { eventually } from '@latchkey/testkit/eventually';
import { withClient } from '@latchkey/testkit/postgres/with-client';
import { Redis } from 'ioredis';

/** Every row of every table of a database, byte strings as hex. */
export function readDatabase(url: string): Promise<string> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ name: string }>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
       WHERE schemaname <> 'information_schema' AND schemaname NOT LIKE 'pg\\_%'`,
    );
    const lines: string[] = [];
    for (const { name } of rows) {
      const content = await client.query<{ row: string }>(`SELECT row_to_json(t)::text AS row FROM ${name} t`);
      lines.push(name, ...content.rows.map(({ row }) => row));
    }
    return lines.join('\n');
  });
}

/** Commands that read each type of Redis value whole. */
const READERS: Readonly<Record<string, (redis: Redis, key: string) => Promise<unknown>>> = {
  string: (redis, key) => redis.get(key),
  hash: (redis, key) => redis.hgetall(key),
  list: (redis, key) => redis.lrange(key, 0, -1),
  set: (redis, key) => redis.smembers(key),
  zset: (redis, key) => redis.zrange(key, '0', '-1', 'WITHSCORES'),
  stream: (redis, key) => redis.xrange(key, '-', '+'),
};

/** Every key and value of a Redis. */
export async function readRedis(url: string): Promise<string> {
  const redis = new Redis(url);
  try {
    const read = async (key: string) => `${key} ${JSON.stringify(await READERS[await redis.type(key)]?.(redis, key))}`;
    return (await Promise.all((await redis.keys('*')).map(read))).join('\n');
  } finally {
    redis.disconnect();
  }
}

/** Every command to a Redis from now on, those of scripts too. */
export interface RedisRecord {
  text(): string;
  stop(): void;
}

/** Records the commands to a database; raw lines, as clients mix up MONITOR and replies. */
export async function recordRedis(url: string): Promise<RedisRecord> {
  const { hostname, port, password, pathname } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk) => {
    text += chunk;
  });
  await once(socket, 'connect');
  if (password !== '') socket.write(`AUTH ${decodeURIComponent(password)}\r\n`);
  socket.write('MONITOR\r\n');
  await eventually(() => text.split('+OK\r\n').length === (password === '' ? 2 : 3));
  const ofDatabase = (line: string) => line.includes(` [${pathname.slice(1)} `);
  return { text: () => text.split('\r\n').filter(ofDatabase).join('\n'), stop: () => void socket.destroy() };
}

/** Encodings in which a secret may be stored. */
export function formsOf(secret: string | Buffer): string[] {
  const bytes = Buffer.from(secret);
  const base64 = bytes.toString('base64').replace(/=+$/, '');
  const forms = [bytes.toString('hex'), base64, bytes.toString('base64url')];
  if (typeof secret === 'string') forms.push(secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1));
  return forms;
}

/** True if a text holds six digits that are not a part of a longer number. */
export const holdsCode = (text: string, code: string): boolean => new RegExp(`(?<![\\d.])${code}(?![\\d.])`).test(text);
