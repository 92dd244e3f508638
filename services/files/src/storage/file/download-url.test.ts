import { timestampDate } from '@bufbuild/protobuf/wkt';
import { refusalOf } from '@latchkey/testkit/refusal';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { startTestFiles, type TestFiles } from '../../testing/test-files.ts';
import { type ObjectStore, objectKey } from '../object-store/object-store.ts';

let files: TestFiles;
beforeAll(async () => {
  files = await startTestFiles();
});
afterAll(() => files.stop());

const reasonOf = async (call: Promise<unknown>) => (await refusalOf(call)).reason;

describe('a download URL', () => {
  const counters = async (ref: OwnedRef) => {
    const [file] = (await files.client.listFiles(ref)).files;
    const last = file?.lastPresignedUrlCreatedAt;
    return { count: file?.presignedUrlsCount, last: last && timestampDate(last) };
  };

  it('is of this service for a file on disk, good for 300 seconds unless told otherwise, and counted', async () => {
    const ref = files.createOwned();
    const fileId = await storeFile(files, ref);
    expect(await counters(ref)).toEqual({ count: 0n, last: undefined });
    const now = files.clock.now();
    for (const [lifetimeSeconds, expected] of [
      [0, 300],
      [1, 1],
      [3_600, 3_600],
    ] as const) {
      const { url, expiresAt } = await files.client.createDownloadUrl({ ...ref, fileId, lifetimeSeconds });
      expect(expiresAt && timestampDate(expiresAt)).toEqual(new Date(now.getTime() + expected * 1_000));
      const token = new URL(url).pathname.split('/').at(-1) ?? '';
      expect(files.ctx.downloadUrls.read(token, now)).toBe(fileId);
      expect(files.ctx.downloadUrls.read(token, new Date(now.getTime() + expected * 1_000))).toBeUndefined();
    }
    expect(await counters(ref)).toEqual({ count: 3n, last: now });
  });

  it('is the store’s own where it serves its objects', async () => {
    const ref = files.createOwned();
    const fileId = await storeFile(files, ref, { name: 'a.png', contentType: 'image/png' });
    const asked: unknown[] = [];
    const createDownloadUrl: ObjectStore['createDownloadUrl'] = async (...args) => {
      asked.push(args);
      return 'https://store.example/object';
    };
    const { client } = files.connect({ aroundStore: (store) => ({ ...store, createDownloadUrl }) });
    const { url } = await client.createDownloadUrl({ ...ref, fileId, lifetimeSeconds: 60 });
    expect(url).toBe('https://store.example/object');
    const description = { fileName: 'a.png', contentType: 'image/png', lifetimeSeconds: 60 };
    expect(asked).toEqual([[objectKey(ref.applicationId, fileId), description]]);
    expect((await counters(ref)).count).toBe(1n);
  });

  it('that could not be made is not counted', async () => {
    const ref = files.createOwned();
    const fileId = await storeFile(files, ref);
    const createDownloadUrl = () => Promise.reject(new Error('refused by the test'));
    const { client } = files.connect({ aroundStore: (store) => ({ ...store, createDownloadUrl }) });
    await expect(client.createDownloadUrl({ ...ref, fileId })).rejects.toThrow();
    expect((await counters(ref)).count).toBe(0n);
  });

  it('is counted as often as it is asked for, also at once', async () => {
    const ref = files.createOwned();
    const fileId = await storeFile(files, ref);
    await Promise.all(Array.from({ length: 20 }, () => files.client.createDownloadUrl({ ...ref, fileId })));
    expect((await counters(ref)).count).toBe(20n);
  });

  it.each([-1, 3_601, 2 ** 31 - 1, -(2 ** 31)])('is not good for %i seconds', async (lifetimeSeconds) => {
    const ref = files.createOwned();
    const fileId = await storeFile(files, ref);
    expect(await reasonOf(files.client.createDownloadUrl({ ...ref, fileId, lifetimeSeconds }))).toBe('lifetime_invalid');
  });
});
