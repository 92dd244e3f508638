import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { holdLocks } from '@latchkey/testkit/postgres/lock-waits';
import { expect, it } from 'vitest';
import { storeFile } from '../../testing/stored-file.ts';
import { useTestFiles } from '../../testing/test-files.ts';
import { reasonOf } from '../../testing/uploads.ts';

const files = useTestFiles();

const KEY_ID = Buffer.from('12345678');

/** A key in minisign's format, and its signatures without a trusted comment, as signify has them. */
function createSigner() {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
  const bare = (bytes: Buffer) => sign(null, bytes, privateKey);
  const signify = (algorithm: string, signature: Buffer) =>
    `untrusted comment: x\n${Buffer.concat([Buffer.from(algorithm), KEY_ID, signature]).toString('base64')}\n`;
  return { key: Buffer.concat([Buffer.from('Ed'), KEY_ID, raw]).toString('base64'), bare, signify };
}

it('returns the digests of a file, which are read once', async () => {
  const ref = files.createOwned();
  const bytes = Buffer.alloc(300_000, 'abc');
  const fileId = await storeFile(files, ref, { bytes });
  const found = await files.client.inspectFile({ ...ref, fileId });
  expect(Buffer.from(found.sha512)).toEqual(createHash('sha512').update(bytes).digest());
  expect([found.byteSize, found.verifiedKey]).toEqual([300_000n, '']);
  const { client } = files.connect({ changeStore: () => ({ read: () => Promise.reject(new Error('read')) }) });
  expect(await client.inspectFile({ ...ref, fileId })).toEqual(found);
});

it.each(['signify', 'prehashed', 'bare'])('verifies a signature of these bytes alone: %s', async (form) => {
  const ref = files.createOwned();
  const bytes = Buffer.from('the bytes');
  const fileId = await storeFile(files, ref, { bytes });
  const { key, bare, signify } = createSigner();
  const stranger = createSigner();
  const hashed = (content: Buffer) => createHash('blake2b512').update(content).digest();
  const signWith = (signer: typeof bare, content: Buffer) => {
    if (form === 'bare') return signer(content).toString('base64');
    return form === 'signify' ? signify('Ed', signer(content)) : signify('ED', signer(hashed(content)));
  };
  const inspect = async (signature: string) =>
    (await files.client.inspectFile({ ...ref, fileId, signature, publicKeys: [stranger.key.slice(0, 8), key] })).verifiedKey;
  expect(await inspect(signWith(bare, bytes))).toBe(key);
  expect(await inspect(signWith(bare, Buffer.from('other bytes')))).toBe('');
  expect(await inspect(signWith(stranger.bare, bytes))).toBe('');
  for (const text of ['', 'x', '=', 'untrusted comment: x', 'AAAA']) expect(await inspect(text)).toBe('');
});

it('rejects a file of another application', async () => {
  const [ref, other] = [files.createOwned(), files.createOwned()];
  const fileId = await storeFile(files, ref);
  expect(await reasonOf(files.client.inspectFile({ ...other, fileId }))).toBe('file_not_found');
});

it('waits for a deletion that is under way', async () => {
  const ref = files.createOwned();
  const fileId = await storeFile(files, ref);
  const commit = await holdLocks(files.db, 'delete from file where id = $1', [fileId]);
  const inspection = reasonOf(files.client.inspectFile({ ...ref, fileId }));
  await commit();
  expect(await inspection).toBe('file_not_found');
});

it('a file that a published release needs is neither deleted nor renamed', async () => {
  const ref = files.createOwned();
  const fileId = await storeFile(files, ref, { name: 'needed' });
  files.apps.needed.add(fileId);
  expect(await reasonOf(files.client.deleteFile({ ...ref, fileId }))).toBe('file_in_use');
  expect(await reasonOf(files.client.renameFile({ ...ref, fileId, fileName: 'other' }))).toBe('file_in_use');
  await files.client.renameFile({ ...ref, fileId, fileName: 'needed' });
  files.apps.needed.delete(fileId);
  await files.client.deleteFile({ ...ref, fileId });
});
