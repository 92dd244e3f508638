import { startHttpServer } from '@latchkey/kit/testing/servers';
import { eventually } from '@latchkey/testkit/eventually';
import { startFauxqs } from 'fauxqs';
import { describe, expect, it } from 'vitest';
import { bodyOf, collect, newKey, someBytes } from '../../testing/object-store/bodies.ts';
import { type Fault, type FaultProxy, type S3Operation, startFaultProxy } from '../../testing/object-store/fault-proxy.ts';
import { listOf } from '../../testing/object-store/object-store-contract.ts';
import { describeS3Store } from '../../testing/object-store/s3-contract.ts';
import type { ObjectStore } from './object-store.ts';
import { createS3Store } from './s3-store.ts';

const MIB = 1024 * 1024;
/** Bytes of the smallest object that is stored in two parts. */
const LARGE = 5 * MIB + 1;
const STALL_MS = 3_000;

const fauxqs = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false });
const endpoint = `http://127.0.0.1:${fauxqs.port}`;
const server = { endpoint, accessKeyId: 'any', secretAccessKey: 'not-checked', stop: () => fauxqs.stop() };
const settings = describeS3Store('an S3 store', server, false);

it('lists every page of objects, and ends where the server repeats the last one', async () => {
  const keys = [newKey(), newKey()].sort();
  const url = await startHttpServer((req, res) => {
    const query = new URL(req.url ?? '', 'http://s3').searchParams;
    if (query.has('uploads')) return res.end('<ListMultipartUploadsResult/>');
    const key = query.get('continuation-token') === 'next' ? keys[1] : keys[0];
    const next = '<IsTruncated>true</IsTruncated><NextContinuationToken>next</NextContinuationToken>';
    return res.end(`<ListBucketResult>${next}<Contents><Key>${key}</Key><Size>1</Size></Contents></ListBucketResult>`);
  });
  const store = createS3Store({ ...settings, S3_ENDPOINT: url });
  expect((await listOf(store, '')).map(({ key }) => key)).toEqual(keys);
});

it('reads at most 8 MiB of an error or a list', async () => {
  let sent = 0;
  const url = await startHttpServer((req, res) => {
    const chunk = Buffer.alloc(MIB, 'a');
    const send = () => {
      for (; sent < 64 * MIB; sent += MIB) if (!res.write(chunk)) return void res.once('drain', send);
      res.end();
    };
    res.writeHead(req.url?.includes('list-type') ? 200 : 403);
    send();
  });
  const store = createS3Store({ ...settings, S3_ENDPOINT: url });
  for (const attempt of [() => store.read(newKey()), () => listOf(store, '')]) {
    sent = 0;
    await expect(attempt()).rejects.toMatchObject({ name: 'S3Error' });
    expect(sent).toBeLessThan(64 * MIB);
  }
});

it('rejects the whole object instead of a range', async () => {
  const url = await startHttpServer((_req, res) => res.end('whole'));
  const store = createS3Store({ ...settings, S3_ENDPOINT: url });
  await expect(store.read(newKey(), { start: 1, end: 2 })).rejects.toThrow('the object store ignored the range');
});

describe('an S3 store that fails', () => {
  const direct = createS3Store(settings);
  const never = new AbortController().signal;
  /** A proxy for each test, since they wait for time-outs and so run concurrently. */
  const withProxy = async (use: (proxy: FaultProxy, store: ObjectStore) => Promise<void>) => {
    const proxy = await startFaultProxy(endpoint);
    const store = createS3Store({ ...settings, S3_ENDPOINT: proxy.url }, STALL_MS);
    try {
      await use(proxy, store);
    } finally {
      await store.close();
      await proxy.close();
    }
  };
  const expectNothing = async (key: string) =>
    expect([await listOf(direct, key), await direct.stat(key)]).toEqual([[], undefined]);
  const large: S3Operation[] = ['create', 'part 1', 'part 2', 'complete'];
  const faults: Fault[] = ['fails', 'is done and never answered'];

  it.concurrent.each([
    ...large.flatMap((operation) => faults.map((fault) => [operation, fault, LARGE] as const)),
    ...faults.map((fault) => ['put', fault, 100] as const),
    ['complete', 'is answered with an error and 200', LARGE] as const,
    // A response with another size.
    ['stat', 'is answered with an error and 200', 100] as const,
  ])('leaves nothing where the request "%s" %s', (operation, fault, byteSize) =>
    withProxy(async (proxy, store) => {
      const key = newKey();
      proxy.set(operation, fault);
      await expect(store.put(key, bodyOf(someBytes(byteSize)), never)).rejects.toThrow('the object store');
      // A repetition would make the client wait twice as long for a store that hangs.
      const attempts = proxy.seen.filter((seen) => seen === operation).length;
      if (fault === 'is done and never answered') expect(attempts).toBeLessThan(2);
      // Without the list, which not every server has.
      if (proxy.seen.includes('part 1')) expect(proxy.seen).toContain('abort');
      await expectNothing(key);
    }),
  );

  it.concurrent.each([100, LARGE])('removes later what it could not remove while the store was away (%i bytes)', (byteSize) =>
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
      await expectNothing(key);
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
      await eventually(() => proxy.seen.includes('put'), { intervalMs: 1 });
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
});
