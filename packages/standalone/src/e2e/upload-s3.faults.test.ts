import { type FaultProxy, startFaultProxy } from '@latchkey/files/testing/object-store/fault-proxy';
import { eventually } from '@latchkey/testkit/eventually';
import { startTcpProxy, type TcpProxy } from '@latchkey/testkit/tcp-proxy';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type OwnSubject, startOwnSubject, tell } from '../testing/faults/own-subject.ts';
import { type OwnS3, startOwnS3 } from '../testing/faults/s3-subject.ts';

/** Promises R9: an S3 store that fails, hangs or dies is a clean error within 10 s, with no row and no rest. */
const FAILED_MS_MAX = 10_000;

/** Two parts. */
const BYTE_SIZE = 6 * 1024 * 1024;

let s3: OwnS3;
let faults: FaultProxy;
let way: TcpProxy;
let subject: OwnSubject;
beforeAll(async () => {
  s3 = await startOwnS3();
  faults = await startFaultProxy(s3.endpoint);
  way = await startTcpProxy(faults.url);
  subject = await startOwnSubject({ env: s3.env(way.url), store: s3.store });
});
afterEach(async () => {
  faults.set();
  await way.restore();
});
afterAll(async () => {
  await subject.instance.stop();
  await way.close();
  await faults.close();
  await s3.stop();
});

let serial = 0;

/** Uploads while something is wrong, and once more when it is not; between the two there must be nothing of the first. */
async function uploadTwice(breaking: () => Promise<unknown>, mending: () => unknown): Promise<{ told: string; ms: number }> {
  serial += 1;
  const fileName = `file-${serial}`;
  const startedAt = performance.now();
  const [outcome] = await Promise.all([subject.upload(fileName, BYTE_SIZE, { pieces: 6, pauseMs: 30 }), breaking()]);
  const ms = performance.now() - startedAt;
  await mending();
  expect((await subject.agreed()).map(({ name }) => name)).not.toContain(fileName);
  expect(tell(await subject.upload(fileName, BYTE_SIZE))).toBe('200');
  expect((await subject.agreed()).map(({ name }) => name)).toContain(fileName);
  return { told: tell(outcome), ms };
}

it.each([
  ['part 2', 'fails'],
  ['part 2', 'hangs'],
  ['all', 'hangs'],
  ['complete', 'fails'],
  ['complete', 'is answered with an error and 200'],
] as const)(
  'a store of which %s %s',
  async (operation, fault) => {
    const { told, ms } = await uploadTwice(
      async () => faults.set(operation, fault),
      () => faults.set(),
    );
    expect(told).toBe('503 INTERNAL_ERROR');
    expect(ms).toBeLessThan(FAILED_MS_MAX);
  },
  60_000,
);

it('a store that dies in the middle of an upload', async () => {
  const before = faults.seen.length;
  const { told, ms } = await uploadTwice(
    async () => {
      await eventually(() => faults.seen.slice(before).includes('part 1'));
      await way.cut();
    },
    () => way.restore(),
  );
  expect(told).toBe('503 INTERNAL_ERROR');
  expect(ms).toBeLessThan(FAILED_MS_MAX);
});
