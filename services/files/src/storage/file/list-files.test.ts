import { timestampDate } from '@bufbuild/protobuf/wkt';
import { statementsOf } from '@latchkey/testkit/postgres/statements';
import { refusalOf } from '@latchkey/testkit/refusal';
import { beforeAll, describe, expect, it } from 'vitest';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { useTestFiles } from '../../testing/test-files.ts';

const files = useTestFiles();
/** An application with 25 files, and their names, newest first. */
let full: OwnedRef;
const names = Array.from({ length: 25 }, (_, i) => `name ${24 - i}`);
beforeAll(async () => {
  full = files.createOwned();
  for (const [i, name] of names.entries()) {
    await storeFile(files, full, { name, createdAt: new Date(files.clock.now().getTime() - i * 1_000) });
  }
});

const HUGE = 2n ** 63n - 1n;

async function page(ref: OwnedRef, request: { page?: bigint; pageSize?: number; nameContains?: string } = {}) {
  const response = await files.client.listFiles({ ...ref, ...request });
  return { names: response.files.map((file) => file.displayName), total: Number(response.totalFiles) };
}

async function named(...given: string[]): Promise<OwnedRef> {
  const ref = files.createOwned();
  for (const name of given) await storeFile(files, ref, { name });
  return ref;
}

describe('a page', () => {
  it('has 10 files, newest first, of this application only, and the total', async () => {
    const expected = { names: names.slice(0, 10), total: 25 };
    await storeFile(files, files.createOwned(full.accountId));
    expect([await page(full), await page(full, { page: 1n })]).toEqual([expected, expected]);
    expect(await page(files.createOwned())).toEqual({ names: [], total: 0 });
  });

  it.each([
    ['', [1, 3, 10, 12, 13, 24, 25, 26]],
    ['name 2', [1, 2, 5, 6, 7]],
  ])('is cut from one order from either end, with the total: search for "%s"', async (nameContains, sizes) => {
    const all = names.filter((name) => name.includes(nameContains));
    for (const pageSize of sizes) {
      for (let number = 1; number <= Math.ceil(all.length / pageSize) + 1; number += 1) {
        const cut = all.slice((number - 1) * pageSize, number * pageSize);
        const found = await page(full, { page: BigInt(number), pageSize, nameContains });
        expect(found).toEqual({ names: cut, total: all.length });
      }
    }
  });

  it.each([4n, 2n ** 53n, HUGE])('past the end is empty and has the total: %s', async (number) => {
    expect(await page(full, { page: number })).toEqual({ names: [], total: 25 });
    expect(await page(full, { page: number, nameContains: 'name' })).toEqual({ names: [], total: 25 });
  });

  it('has files of one moment by id, descending', async () => {
    const ref = files.createOwned();
    const ids = await Promise.all(Array.from({ length: 12 }, () => storeFile(files, ref)));
    const seen = [];
    for (const number of [1n, 2n]) seen.push(...(await files.client.listFiles({ ...ref, page: number })).files);
    expect(seen.map((file) => file.id)).toEqual([...ids].sort().reverse());
  });

  it.each([{ pageSize: -1 }, { pageSize: 101 }, { page: -1n }, { page: -HUGE }])('is rejected with %o', async (request) => {
    const refusal = await refusalOf(files.client.listFiles({ ...full, ...request }));
    expect(refusal).toMatchObject({ reason: 'page_invalid', code: 'VALIDATION_ERROR' });
  });

  it('has every field of a file', async () => {
    const ref = files.createOwned();
    const createdAt = new Date('2026-01-02T03:04:05.678Z');
    const id = await storeFile(files, ref, { name: 'a file', bytes: Buffer.from('abc'), contentType: 'image/png', createdAt });
    const [file] = (await files.client.listFiles(ref)).files;
    expect(file).toMatchObject({ id, displayName: 'a file', byteSize: 3n, contentType: 'image/png', presignedUrlsCount: 0n });
    expect(Buffer.from(file?.checksum ?? []).toString('hex')).toMatch(/^ba7816bf8f01cfea/);
    expect(file?.createdAt && timestampDate(file.createdAt)).toEqual(createdAt);
    expect(file).not.toHaveProperty('lastPresignedUrlCreatedAt');
  });
});

describe('a search', () => {
  it.each([
    ['NAME 2', 6],
    ['24', 1],
    [' ', 25],
    ['name 2x', 0],
  ])('finds %j anywhere in a name, without regard to case: %i', async (nameContains, total) => {
    const matches = names.filter((name) => name.includes(nameContains.toLowerCase()));
    expect(await page(full, { nameContains, pageSize: 100 })).toEqual({ names: matches, total });
  });

  it('counts files of one moment', async () => {
    const ref = await named(...Array.from({ length: 12 }, (_, i) => `Same-${i}`));
    expect((await page(ref, { nameContains: 'same', pageSize: 5 })).total).toBe(12);
  });

  it('takes the characters of patterns literally', async () => {
    const ref = await named('a_b', 'axb', 'a.b');
    for (const name of ['a_b', 'a.b']) expect(await page(ref, { nameContains: name })).toEqual({ names: [name], total: 1 });
    for (const nameContains of ['%', 'a%', '\\', 'a\\_b', '*', '[a]']) {
      expect(await page(ref, { nameContains })).toEqual({ names: [], total: 0 });
    }
  });

  it.each(['a'.repeat(17), 'a'.repeat(100_000), '\u212a', 'a\0', '\ud800', 'name\n'])(
    'for text that no name has finds nothing, without a query',
    async (nameContains) => {
      const ref = await named('k', 'name', 'a'.repeat(16));
      const sent = await statementsOf(async () => expect(await page(ref, { nameContains })).toEqual({ names: [], total: 0 }));
      expect(sent).toEqual([]);
      expect((await page(ref, { nameContains: 'A'.repeat(16) })).total).toBe(1);
    },
  );
});
