import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { eventually } from '@latchkey/testkit/eventually';
import { startTcpProxy } from '@latchkey/testkit/tcp-proxy';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { ObjectStore } from '../../storage/object-store/object-store.ts';
import { createS3Store, type S3Settings } from '../../storage/object-store/s3-store.ts';
import { bodyOf, collect, newKey, someBytes } from './bodies.ts';
import { type Fault, type FaultProxy, type S3Operation, startFaultProxy } from './fault-proxy.ts';
import { describeObjectStore, listOf } from './object-store-contract.ts';
import { leaveUnfinished } from './run-put.ts';

const MIB = 1024 * 1024;
const BUCKET = 'objects';
const STALL_MS = 1_500;

/** An S3 server that is empty, and what it can't do. */
export interface ServerUnderTest {
  readonly endpoint: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly listsUnfinished: boolean;
  /** Whether it looks at signatures, and at what a URL says of the answer's type and name. */
  readonly readsUrls: boolean;
}

/** What the S3 store promises on a server, beyond the contract of all stores. */
export function describeS3Store(name: string, { server, stop }: { server: ServerUnderTest; stop: () => Promise<void> }): void {
  const settings: S3Settings = {
    ...server,
    region: 'us-east-1',
    bucket: BUCKET,
    forcePathStyle: true,
  };
  beforeAll(() => createBucket(settings));
  afterAll(stop);

  describeObjectStore(name, async () => ({
    store: createS3Store(settings),
    sameStore: createS3Store(settings),
    leaveUnfinished: server.listsUnfinished ? (key) => leaveUnfinished(JSON.stringify(settings), key) : undefined,
    close: async () => undefined,
  }));
  describe(`${name}: download URLs`, () => describeDownloads(settings, server.readsUrls));
  describe(`${name}: when it fails`, () => describeFaults(settings));
}

function describeDownloads(settings: S3Settings, readsUrls: boolean): void {
  const store = createS3Store(settings);
  const bytes = someBytes(100);
  const describeFile = (lifetimeSeconds: number) => ({ fileName: 'set up.v2.exe', contentType: 'text/x-test', lifetimeSeconds });
  const createUrl = async (lifetimeSeconds = 60) => {
    const key = newKey();
    await store.put(key, bodyOf(bytes), new AbortController().signal);
    return (await store.createDownloadUrl(key, describeFile(lifetimeSeconds))) as string;
  };

  it.runIf(readsUrls)('downloads with the given name and type until it expires, and works for nothing else', async () => {
    const url = new URL(await createUrl(2));
    expect(url.searchParams.get('X-Amz-Expires')).toBe('2');
    const response = await fetch(url);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/x-test');
    expect(response.headers.get('content-disposition')).toBe('attachment; filename="set up.v2.exe"');
    await response.arrayBuffer();
    const other = new URL(await createUrl());
    other.searchParams.set('response-content-type', 'text/html');
    expect((await fetch(other)).status).toBe(403);
    await eventually(async () => (await fetch(url)).status === 403);
  });

  it('is signed for the endpoint that clients reach, and has no secret, while calls go to the other', async () => {
    const proxy = await startTcpProxy(settings.endpoint as string);
    const { port } = new URL(proxy.url);
    const split = createS3Store({ ...settings, publicEndpoint: `http://localhost:${port}` });
    onTestFinished(async () => {
      await split.close();
      await proxy.close();
    });
    await proxy.cut();
    const key = newKey();
    await split.put(key, bodyOf(bytes), new AbortController().signal);
    expect(await split.stat(key)).toEqual({ byteSize: bytes.length });
    const url = new URL((await split.createDownloadUrl(key, describeFile(60))) as string);
    expect(url.href).not.toContain(settings.secretAccessKey);
    expect(url.host).toBe(`localhost:${port}`);
    await proxy.restore();
    const range = await fetch(url, { headers: { range: 'bytes=10-19' } });
    expect(bytes.subarray(10, 20).equals(Buffer.from(await range.arrayBuffer()))).toBe(true);
    if (!readsUrls) return;
    url.host = new URL(settings.endpoint as string).host;
    expect((await fetch(url)).status).toBe(403);
  });
}

function describeFaults(settings: S3Settings): void {
  const direct = createS3Store(settings);
  const never = new AbortController().signal;
  /** A proxy for each test, since they wait for time-outs and so run concurrently. */
  const withProxy = async (use: (proxy: FaultProxy, store: ObjectStore) => Promise<void>) => {
    const proxy = await startFaultProxy(settings.endpoint as string);
    const store = createS3Store({ ...settings, endpoint: proxy.url, stallMs: STALL_MS });
    try {
      await use(proxy, store);
    } finally {
      await store.close();
      await proxy.close();
    }
  };
  const large: S3Operation[] = ['create', 'part 1', 'part 2', 'complete'];
  const faults: Fault[] = ['fails', 'hangs', 'is done and never answered'];
  const cases = [
    ...large.flatMap((operation) => faults.map((fault) => [operation, fault, 7 * MIB] as const)),
    ...faults.map((fault) => ['put', fault, 100] as const),
    ['complete', 'is answered with an error and 200', 7 * MIB] as const,
    // A response with another size.
    ['stat', 'is answered with an error and 200', 100] as const,
  ];

  it.concurrent.each(cases)('leaves nothing where the request "%s" %s', (operation, fault, byteSize) =>
    withProxy(async (proxy, store) => {
      const key = newKey();
      proxy.set(operation, fault);
      await expect(store.put(key, bodyOf(someBytes(byteSize)), never)).rejects.toThrow('the object store');
      // A repetition would have the client wait twice as long for a store that hangs.
      const attempts = proxy.seen.filter((seen) => seen === operation).length;
      if (fault === 'hangs' || fault === 'is done and never answered') expect(attempts).toBe(1);
      // Without help of the list, which not every server has.
      if (proxy.seen.includes('part 1')) expect(proxy.seen).toContain('abort');
      expect(await listOf(direct, key)).toEqual([]);
      expect(await direct.stat(key)).toBeUndefined();
    }),
  );

  it.concurrent.each([100, 7 * MIB])('removes later what it could not remove while the store was away (%i bytes)', (byteSize) =>
    withProxy(async (proxy, store) => {
      const key = newKey();
      const whole = someBytes(byteSize);
      async function* body() {
        yield* bodyOf(whole.subarray(0, byteSize - 1));
        // The last byte makes the last part, and no request is answered from there on.
        proxy.set('all', 'is done and never answered');
        yield whole.subarray(byteSize - 1);
      }
      await expect(store.put(key, body(), never)).rejects.toThrow('the object store');
      proxy.set();
      await store.remove(key);
      expect(await listOf(direct, key)).toEqual([]);
      expect(await direct.stat(key)).toBeUndefined();
    }),
  );

  it.concurrent('reads no more of a body than a part while the store takes nothing', () =>
    withProxy(async (proxy, store) => {
      proxy.set('part 1', 'hangs');
      const body = bodyOf(someBytes(20 * MIB));
      await expect(store.put(newKey(), body, never)).rejects.toThrow('the object store');
      expect(body.taken).toBeGreaterThanOrEqual(5 * MIB);
      expect(body.taken).toBeLessThanOrEqual(5 * MIB + 128 * 1024);
    }));

  it.concurrent('retries what failed once', () =>
    withProxy(async (proxy, store) => {
      const key = newKey();
      const bytes = someBytes(100);
      proxy.set('put', 'fails');
      const putting = store.put(key, bodyOf(bytes), never);
      const before = proxy.seen.filter((operation) => operation === 'put').length;
      await eventually(() => proxy.seen.filter((operation) => operation === 'put').length > before, { intervalMs: 1 });
      proxy.set();
      await putting;
      expect((await collect(await direct.read(key))).equals(bytes)).toBe(true);
    }));

  it.concurrent('fails every call in bounded time while the server hangs', () =>
    withProxy(async (proxy, store) => {
      proxy.set('all', 'hangs');
      const key = newKey();
      const calls = [store.read(key), store.stat(key), store.remove(key), store.check(), listOf(store, '')];
      for (const result of await Promise.allSettled(calls)) {
        expect(result).toMatchObject({ status: 'rejected', reason: { name: 'S3Error', code: 'TimeoutError' } });
      }
    }));
}

async function createBucket(settings: S3Settings): Promise<void> {
  const { endpoint = '', region, accessKeyId = '', secretAccessKey = '' } = settings;
  const client = new S3Client({ endpoint, region, credentials: { accessKeyId, secretAccessKey }, forcePathStyle: true });
  await client.send(new CreateBucketCommand({ Bucket: settings.bucket }));
  client.destroy();
}
