import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { storeFile } from '../../testing/stored-file.ts';
import { startTestFiles, type TestFiles } from '../../testing/test-files.ts';
import { MIB } from './charge.ts';

let files: TestFiles;
beforeAll(async () => {
  files = await startTestFiles();
});
afterAll(() => files.stop());

const usageOf = async (accountId: string) => {
  const { chargedMib, fileCount } = await files.client.getStorageUsage({ accountId });
  return { chargedMib, fileCount };
};

it('counts files as they are charged: whole MiB, rounded down, at least one', async () => {
  const ref = files.createOwned();
  const other = files.createOwned(ref.accountId);
  await storeFile(files, ref, { bytes: Buffer.alloc(1) });
  await storeFile(files, ref, { bytes: Buffer.alloc(3 * MIB - 1) });
  await storeFile(files, other, { bytes: Buffer.alloc(2 * MIB) });
  await storeFile(files, files.createOwned());
  expect(await usageOf(ref.accountId)).toEqual({ chargedMib: 5n, fileCount: 3n });
});

it('says what the account may have', async () => {
  const { client } = files.connect({ env: { STORAGE_ALLOWANCE_MIB: '7', FILE_COUNT_LIMIT: '3' } });
  const usage = await client.getStorageUsage({ accountId: randomUUID() });
  expect(usage).toMatchObject({ chargedMib: 0n, chargedMibMax: 7n, fileCount: 0n, fileCountMax: 3n });
});

it('does not count files of a deleted application, also before they are removed', async () => {
  const ref = files.createOwned();
  const other = files.createOwned(ref.accountId);
  await storeFile(files, ref);
  await storeFile(files, other);
  files.apps.delete(ref.applicationId);
  expect(await usageOf(ref.accountId)).toEqual({ chargedMib: 1n, fileCount: 1n });
});

it('asks nobody of an account without files, nor of what is no account', async () => {
  const asked = files.apps.requestIds.length;
  for (const accountId of [randomUUID(), 'x']) expect(await usageOf(accountId)).toEqual({ chargedMib: 0n, fileCount: 0n });
  expect(files.apps.requestIds).toHaveLength(asked);
});
