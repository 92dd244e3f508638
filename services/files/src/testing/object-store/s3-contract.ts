import { CreateBucketCommand, CreateMultipartUploadCommand, S3Client, UploadPartCommand } from '@aws-sdk/client-s3';
import { startTcpProxy } from '@latchkey/testkit/network/tcp-proxy';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { createS3Store, type S3Settings } from '../../storage/object-store/s3-store.ts';
import { bodyOf, newKey, someBytes } from './bodies.ts';
import { describeObjectStore } from './object-store-contract.ts';

/** An S3 server that is empty. */
export interface ServerUnderTest {
  readonly endpoint: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  stop(): Promise<void>;
}

/** Describes the S3 store on a server; `isComplete` if it lists uploads and checks signatures. */
export function describeS3Store(name: string, { stop, ...server }: ServerUnderTest, isComplete: boolean): S3Settings {
  const { endpoint, accessKeyId, secretAccessKey } = server;
  const settings: S3Settings = {
    S3_ENDPOINT: endpoint,
    S3_REGION: 'us-east-1',
    S3_BUCKET: 'objects',
    S3_ACCESS_KEY_ID: accessKeyId,
    S3_SECRET_ACCESS_KEY: secretAccessKey,
    S3_FORCE_PATH_STYLE: 'true',
  };
  const credentials = { accessKeyId, secretAccessKey };
  const client = new S3Client({ endpoint, region: settings.S3_REGION, credentials, forcePathStyle: true });
  beforeAll(() => client.send(new CreateBucketCommand({ Bucket: 'objects' })));
  afterAll(async () => {
    client.destroy();
    await stop();
  });

  describeObjectStore(name, async () => ({
    store: createS3Store(settings),
    sameStore: createS3Store(settings),
    leaveUnfinished: isComplete ? (key) => leaveUnfinished(client, key) : undefined,
    close: async () => undefined,
  }));

  it('signs download URLs for the endpoint that clients reach, while calls go to the other', async () => {
    const proxy = await startTcpProxy(endpoint);
    const { port } = new URL(proxy.url);
    const store = createS3Store({ ...settings, S3_PUBLIC_ENDPOINT: `http://localhost:${port}` });
    onTestFinished(async () => {
      await store.close();
      await proxy.close();
    });
    await proxy.cut();
    const key = newKey();
    const bytes = someBytes(100);
    await store.put(key, bodyOf(bytes), new AbortController().signal);
    const description = { fileName: 'set up.v2.exe', contentType: 'text/x-test', lifetimeSeconds: 60 };
    const url = new URL((await store.createDownloadUrl(key, description)) as string);
    expect(url.href).not.toContain(secretAccessKey);
    expect([url.host, url.searchParams.get('X-Amz-Expires')]).toEqual([`localhost:${port}`, '60']);
    await proxy.restore();
    const range = await fetch(url, { headers: { range: 'bytes=10-19' } });
    expect(bytes.subarray(10, 20).equals(Buffer.from(await range.arrayBuffer()))).toBe(true);
    if (!isComplete) return;
    expect(range.headers.get('content-type')).toBe('text/x-test');
    expect(range.headers.get('content-disposition')).toBe('attachment; filename="set up.v2.exe"');
    const other = new URL(url);
    other.searchParams.set('response-content-type', 'text/html');
    expect((await fetch(other)).status).toBe(403);
    url.host = new URL(endpoint).host;
    expect((await fetch(url)).status).toBe(403);
  });
  return settings;
}

async function leaveUnfinished(client: S3Client, key: string): Promise<void> {
  const target = { Bucket: 'objects', Key: key };
  const { UploadId } = await client.send(new CreateMultipartUploadCommand(target));
  await client.send(new UploadPartCommand({ ...target, UploadId, PartNumber: 1, Body: Buffer.alloc(5 * 1024 * 1024) }));
}
