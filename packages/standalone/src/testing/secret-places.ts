import { once } from 'node:events';
import { connect } from 'node:net';
import { eventually } from '@latchkey/testkit/eventually';
import { withClient } from '@latchkey/testkit/with-client';
import { Redis } from 'ioredis';

/** All that stands in a database, in whatever schema, byte strings as hex. */
export function readDatabase(url: string): Promise<string> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ name: string }>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
       WHERE schemaname <> 'information_schema' AND schemaname NOT LIKE 'pg\\_%'`,
    );
    const tables = [];
    for (const { name } of rows) {
      const content = await client.query(`SELECT row_to_json(t)::text AS row FROM ${name} t`);
      tables.push([name, content.rows.map(({ row }) => row)]);
    }
    // As it is, and not escaped once more.
    return tables.flat(2).join('\n');
  });
}

/** All that stands in a Redis. */
export async function readRedis(url: string): Promise<string> {
  const redis = new Redis(url);
  try {
    const keys = await redis.keys('*');
    const entries = await Promise.all(keys.map(async (key) => [key, JSON.stringify(await readValue(redis, key))]));
    return entries.flat().join('\n');
  } finally {
    redis.disconnect();
  }
}

/** A value of whatever kind; queues have some of each. */
async function readValue(redis: Redis, key: string): Promise<unknown> {
  switch (await redis.type(key)) {
    case 'hash':
      return redis.hgetall(key);
    case 'list':
      return redis.lrange(key, 0, -1);
    case 'set':
      return redis.smembers(key);
    case 'zset':
      return redis.zrange(key, '0', '-1', 'WITHSCORES');
    case 'stream':
      return redis.xrange(key, '-', '+');
    case 'none':
      return undefined;
    default:
      return redis.get(key);
  }
}

/** Every command that a Redis is told from now on, scripts' own among them. */
export interface RedisRecord {
  /** What was told until now. */
  text(): string;
  stop(): void;
}

/**
 * Records what is told to the numbered database of a URL. The lines are taken as they come: a client that reads answers to commands in them trips over
 * those that come together with the answer to MONITOR.
 */
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
  const ofDatabase = ` [${pathname.slice(1)} `;
  return {
    text: () =>
      text
        .split('\r\n')
        .filter((line) => line.includes(ofDatabase))
        .join('\n'),
    stop: () => void socket.destroy(),
  };
}

/** Forms in which a secret may stand somewhere. */
export function formsOf(secret: string | Buffer): string[] {
  const bytes = Buffer.from(secret);
  const base64 = bytes.toString('base64').replace(/=+$/, '');
  const forms = [bytes.toString('hex'), base64, bytes.toString('base64url')];
  if (typeof secret === 'string') forms.push(secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1));
  return forms;
}

/** Whether six digits stand in a text by themselves, and not in a longer number. */
export function holdsCode(text: string, code: string): boolean {
  return new RegExp(`(?<![\\d.])${code}(?![\\d.])`).test(text);
}
