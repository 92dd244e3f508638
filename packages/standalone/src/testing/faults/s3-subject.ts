import { createHash } from 'node:crypto';
import { pipeline } from 'node:stream/promises';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { createS3Store, type S3Settings } from '@latchkey/files/storage/object-store/s3-store';
import { startS3Server } from '@latchkey/testkit/s3-server';
import { startFauxqs } from 'fauxqs';
import type { StoreView } from './holdings.ts';

const BUCKET = 'objects';

/** An S3 server with an empty bucket. */
export interface OwnS3 {
  readonly endpoint: string;
  /** Looks into the bucket by a way of its own. */
  readonly store: StoreView;
  /** Settings of a service that reaches the bucket at some endpoint. */
  env(endpoint: string): NodeJS.ProcessEnv;
  stop(): Promise<void>;
}

/** Starts the server of the distribution's packages or, where there is none, one from npm, which does not tell of unfinished uploads. */
export async function startOwnS3(): Promise<OwnS3> {
  const found = await startS3Server();
  const server = 'unavailable' in found ? await startNpmServer() : found;
  const { endpoint, region, accessKeyId, secretAccessKey } = server;
  const settings: S3Settings = {
    endpoint,
    region,
    accessKeyId,
    secretAccessKey,
    bucket: BUCKET,
    forcePathStyle: true,
  };
  await createBucket(settings, { accessKeyId, secretAccessKey });
  const store = createS3Store(settings);
  return {
    endpoint,
    store: viewOf(store),
    env: (reachedAt) => ({
      OBJECT_STORE: 's3',
      S3_ENDPOINT: reachedAt.replace(/\/$/, ''),
      S3_REGION: region,
      S3_BUCKET: BUCKET,
      S3_ACCESS_KEY_ID: accessKeyId,
      S3_SECRET_ACCESS_KEY: secretAccessKey,
      S3_FORCE_PATH_STYLE: 'true',
    }),
    async stop() {
      await store.close();
      await server.stop();
    },
  };
}

async function startNpmServer() {
  const server = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false });
  const endpoint = `http://127.0.0.1:${server.port}`;
  return { endpoint, region: 'us-east-1', accessKeyId: 'any', secretAccessKey: 'not-looked-at', stop: () => server.stop() };
}

async function createBucket(
  { endpoint = '', region }: S3Settings,
  credentials: { accessKeyId: string; secretAccessKey: string },
): Promise<void> {
  const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true });
  await client.send(new CreateBucketCommand({ Bucket: BUCKET }));
  client.destroy();
}

function viewOf(store: ReturnType<typeof createS3Store>): StoreView {
  return {
    async list() {
      const objects = new Map<string, number>();
      const unfinished: string[] = [];
      for await (const object of store.list()) {
        if (object.unfinished) unfinished.push(`multipart upload of ${object.key}`);
        else objects.set(object.key, object.byteSize);
      }
      return { objects, unfinished };
    },
    async checksum(key) {
      const body = await store.read(key);
      if (!body) throw new Error(`${key} is not there`);
      const hash = createHash('sha256');
      await pipeline(body, hash);
      return hash.digest('hex');
    },
  };
}
