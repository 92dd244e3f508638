import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startPostgres } from '@latchkey/embedded/postgres';
import { startRedis } from '@latchkey/embedded/redis';
import { startS3Server } from '@latchkey/testkit/s3-server';
import { withClient } from '@latchkey/testkit/with-client';

const CACHE_DIR = fileURLToPath(new URL('../../../node_modules/.cache/latchkey', import.meta.url));

/** Starts the three servers of docker-compose.yml, as they can be had without images; and says where they are in a container's settings. */
export async function startServers() {
  const dataDir = await mkdtemp(join(tmpdir(), 'latchkey-image-'));
  const common = { dataDir, removeDirWhenOrphaned: dataDir };
  const [postgres, redis, s3] = await Promise.all([
    startPostgres(common),
    startRedis({ ...common, cacheDir: CACHE_DIR }),
    startS3Server(),
  ]);
  if ('unavailable' in s3) throw new Error(s3.unavailable);
  await withClient(postgres.url(), (client) => client.query('CREATE DATABASE latchkey'));
  const adapt = (environment: Record<string, string>): Record<string, string> => {
    const adapted = Object.entries(environment).map(([name, value]): [string, string] => {
      if (name === 'ADMIN_DATABASE_URL') return [name, postgres.url('latchkey')];
      if (name === 'REDIS_URL') return [name, redis.url];
      return [name, value.replace('@postgres:5432/', `@127.0.0.1:${postgres.port}/`)];
    });
    const { endpoint, accessKeyId, secretAccessKey } = s3;
    const server = { S3_ENDPOINT: endpoint, S3_PUBLIC_ENDPOINT: endpoint };
    const bucket = { ...server, S3_ACCESS_KEY_ID: accessKeyId, S3_SECRET_ACCESS_KEY: secretAccessKey };
    return { ...Object.fromEntries(adapted), ...('S3_BUCKET' in environment && bucket) };
  };
  const stop = async () => {
    await Promise.all([postgres.stop(), redis.stop(), s3.stop()]);
    await rm(dataDir, { recursive: true, force: true });
  };
  return { adapt, stop };
}
