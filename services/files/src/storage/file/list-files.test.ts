import { randomUUID } from 'node:crypto';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { refusalOf } from '@latchkey/testkit/refusal';
import { statementsOf } from '@latchkey/testkit/statements';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { startTestFiles, type TestFiles } from '../../testing/test-files.ts';

let files: TestFiles;
/** An application of 25 files and their names, newest first. */
let full: OwnedRef;
const names = Array.from({ length: 25 }, (_, i) => `name ${24 - i}`);
beforeAll(async () => {
  files = await startTestFiles();
  full = files.createOwned();
  for (const [i, name] of names.entries()) {
    await storeFile(files, full, { name, createdAt: new Date(files.clock.now().getTime() - i * 1_000) });
  }
});
afterAll(() => files.stop());

const HUGE = 2n ** 63n - 1n;

/** What a page has, by names. */
async function page(ref: OwnedRef, request: { page?: bigint; pageSize?: number; nameContains?: string } = {}) {
  const answer = await files.client.listFiles({ ...ref, ...request });
  return { names: answer.files.map((file) => file.displayName), total: Number(answer.totalFiles) };
}

/** An application with files of these names. */
async function named(...given: string[]): Promise<OwnedRef> {
  const ref = files.createOwned();
  for (const name of given) await storeFile(files, ref, { name });
  return ref;
}

describe('a page', () => {
  it('has 10 files, newest first, and the count of all of them', async () => {
    expect(await page(full)).toEqual({ names: names.slice(0, 10), total: 25 });
    expect(await page(full, { page: 1n })).toEqual({ names: names.slice(0, 10), total: 25 });
  });

  it.each([1, 2, 3, 4, 5, 7, 10, 13, 24, 25, 26, 100])(
    'is cut from the same order from either end: %i files each',
    async (pageSize) => {
      for (let number = 1; number <= Math.ceil(25 / pageSize) + 1; number += 1) {
        const first = (number - 1) * pageSize;
        expect(await page(full, { page: BigInt(number), pageSize })).toEqual({
          names: names.slice(first, first + pageSize),
          total: 25,
        });
      }
    },
  );

  it.each([4n, 5n, 1_000_000_000_000n, 2n ** 53n, HUGE / 10n, HUGE])(
    'past the end is empty and counts all: %s',
    async (number) => {
      expect(await page(full, { page: number })).toEqual({ names: [], total: 25 });
      expect(await page(full, { page: number, nameContains: 'name' })).toEqual({ names: [], total: 25 });
    },
  );

  it('of an application without files is empty', async () => {
    expect(await page(files.createOwned())).toEqual({ names: [], total: 0 });
    expect(await page(files.createOwned(), { page: HUGE })).toEqual({ names: [], total: 0 });
  });

  it('has files of one moment by id, descending', async () => {
    const ref = files.createOwned();
    const ids = await Promise.all(Array.from({ length: 12 }, () => storeFile(files, ref)));
    const seen = [];
    for (const number of [1n, 2n]) seen.push(...(await files.client.listFiles({ ...ref, page: number })).files);
    expect(seen.map((file) => file.id)).toEqual([...ids].sort().reverse());
  });

  it.each([
    ['no size', { pageSize: -1 }],
    ['too many files', { pageSize: 101 }],
    ['a number below 1', { page: -1n }],
    ['a number far below 1', { page: -HUGE }],
  ])('is refused with %s', async (_, request) => {
    expect(await refusalOf(files.client.listFiles({ ...full, ...request }))).toMatchObject({
      reason: 'page_invalid',
      code: 'VALIDATION_ERROR',
    });
  });

  it('says everything of a file', async () => {
    const ref = files.createOwned();
    const createdAt = new Date('2026-01-02T03:04:05.678Z');
    const bytes = Buffer.from('abc');
    const id = await storeFile(files, ref, { name: 'a file', bytes, contentType: 'image/png', createdAt });
    const [file] = (await files.client.listFiles(ref)).files;
    expect(file).toMatchObject({ id, displayName: 'a file', byteSize: 3n, contentType: 'image/png', presignedUrlsCount: 0n });
    expect(Buffer.from(file?.checksum ?? []).toString('hex')).toMatch(/^ba7816bf8f01cfea/);
    expect(file?.createdAt && timestampDate(file.createdAt)).toEqual(createdAt);
    expect(file).not.toHaveProperty('lastPresignedUrlCreatedAt');
  });

  it('shows nothing of another application of the account', async () => {
    const ref = files.createOwned(full.accountId);
    await storeFile(files, ref, { name: 'alone' });
    expect(await page(ref)).toEqual({ names: ['alone'], total: 1 });
    expect((await page(full)).total).toBe(25);
  });
});

describe('a search', () => {
  it.each([
    ['ame 2', 6],
    ['NAME 2', 6],
    ['name 24', 1],
    ['24', 1],
    [' ', 25],
    ['e', 25],
    ['name 2x', 0],
  ])('finds %j anywhere in a name, without regard to case: %i', async (nameContains, total) => {
    const matches = names.filter((name) => name.includes(nameContains.toLowerCase()));
    expect(await page(full, { nameContains, pageSize: 100 })).toEqual({ names: matches, total });
  });

  it.each([1, 2, 3, 5, 6, 7])('counts all that match on every page: %i files each', async (pageSize) => {
    const matches = names.filter((name) => name.includes('name 2'));
    for (let number = 1; number <= Math.ceil(6 / pageSize) + 1; number += 1) {
      const first = (number - 1) * pageSize;
      const expected = { names: matches.slice(first, first + pageSize), total: 6 };
      expect(await page(full, { page: BigInt(number), pageSize, nameContains: 'name 2' })).toEqual(expected);
    }
  });

  it('counts those of one moment as well', async () => {
    const ref = await named(...Array.from({ length: 12 }, (_, i) => `same-${i}`));
    expect((await page(ref, { nameContains: 'same', pageSize: 5 })).total).toBe(12);
  });

  it('folds the case of names too', async () => {
    expect(await page(await named('SetUp.EXE', 'other'), { nameContains: 'tup.ex' })).toEqual({ names: ['SetUp.EXE'], total: 1 });
  });

  it('takes what a pattern would mean literally', async () => {
    const ref = await named('a_b', 'axb', 'a.b', 'a-b');
    expect(await page(ref, { nameContains: 'a_b' })).toEqual({ names: ['a_b'], total: 1 });
    expect(await page(ref, { nameContains: 'a.b' })).toEqual({ names: ['a.b'], total: 1 });
    for (const nameContains of ['%', 'a%', '\\', 'a\\_b', '*', '[a]', '^a', '$']) {
      expect(await page(ref, { nameContains })).toEqual({ names: [], total: 0 });
    }
  });

  it.each([
    ['longer than a name', 'a'.repeat(17)],
    ['very long', 'a'.repeat(100_000)],
    ['of a letter that folds to an ASCII one', '\u212a'],
    ['a NUL', 'a\0'],
    ['half a surrogate pair', '\ud800'],
    ['a line', 'name\n'],
  ])('for text that no name has finds nothing, and asks no table: %s', async (_, nameContains) => {
    const ref = await named('k', 'name', 'a'.repeat(16));
    expect(await page(ref, { nameContains })).toEqual({ names: [], total: 0 });
    expect(await statementsOf(() => page(ref, { nameContains }))).toEqual([]);
    expect((await page(ref, { nameContains: 'A'.repeat(16) })).total).toBe(1);
  });

  it('of an application that is not the account’s is refused, whatever the text', async () => {
    const stranger = { accountId: randomUUID(), applicationId: full.applicationId };
    for (const nameContains of ['', 'name', '%']) {
      expect(await refusalOf(files.client.listFiles({ ...stranger, nameContains }))).toMatchObject({
        reason: 'application_not_found',
      });
    }
  });
});
