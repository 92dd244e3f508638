import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { createS3Store, type S3Settings } from '@latchkey/files/storage/object-store/s3-store';
import { startFaultProxy } from '@latchkey/files/testing/object-store/fault-proxy';
import { startTcpProxy } from '@latchkey/testkit/network/tcp-proxy';
import { startS3Server } from '@latchkey/testkit/s3/s3-server';
import { startFauxqs } from 'fauxqs';
import type { OwnStore } from './standalone-target.ts';
import { type Fault, STORE_ERROR_MS_MAX } from './target.ts';

const BUCKET = 'objects';

/** Requests to S3 that go wrong. Files over 5 MiB have a second part. */
const FAULTS = [
  ['put', 'fails'],
  ['all', 'hangs'],
  ['put', 'is answered with an error and 200'],
] as const;

/** An S3 server behind proxies that break requests and the network to it. */
export async function startS3Store(): Promise<OwnStore> {
  const found = await startS3Server();
  const server = 'unavailable' in found ? await startNpmServer() : found;
  const { endpoint, region, accessKeyId, secretAccessKey } = server;
  const settings: S3Settings = {
    S3_ENDPOINT: endpoint,
    S3_REGION: region,
    S3_BUCKET: BUCKET,
    S3_ACCESS_KEY_ID: accessKeyId,
    S3_SECRET_ACCESS_KEY: secretAccessKey,
    S3_FORCE_PATH_STYLE: 'true',
  };
  const client = new S3Client({ endpoint, region, credentials: { accessKeyId, secretAccessKey }, forcePathStyle: true });
  await client.send(new CreateBucketCommand({ Bucket: BUCKET }));
  client.destroy();
  const store = createS3Store(settings);
  const requests = await startFaultProxy(endpoint);
  const network = await startTcpProxy(requests.url);
  const costs = { costs: 'errors', errorMsMax: STORE_ERROR_MS_MAX } as const;
  const faults: Fault[] = FAULTS.map(([operation, fault]) => ({
    ...{ name: `S3 ${operation} ${fault}`, ...costs },
    breakIt: () => requests.set(operation, fault),
    repair: () => requests.set(),
  }));
  return {
    env: {
      OBJECT_STORE: 's3',
      ...settings,
      S3_ENDPOINT: network.url.replace(/\/$/, ''),
    },
    store: {
      async list() {
        const objects = new Map<string, number>();
        const unfinished: string[] = [];
        for await (const object of store.list()) {
          if (object.unfinished) unfinished.push(`multipart upload of ${object.key}`);
          else objects.set(object.key, object.byteSize);
        }
        return { objects, unfinished };
      },
      read: (key) => store.read(key),
    },
    faults: [...faults, { name: 'S3 cut off', ...costs, breakIt: () => network.cut(), repair: () => network.restore() }],
    async stop() {
      await network.close();
      await requests.close();
      await store.close();
      await server.stop();
    },
  };
}

/** A server from npm, which does not list unfinished uploads. */
async function startNpmServer() {
  const server = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false });
  const endpoint = `http://127.0.0.1:${server.port}`;
  return { endpoint, region: 'us-east-1', accessKeyId: 'any', secretAccessKey: 'not-checked', stop: () => server.stop() };
}
