import { createHash, randomUUID } from 'node:crypto';
import { PassThrough, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { Code, ConnectError } from '@connectrpc/connect';
import { ACTOR_HEADER } from '@latchkey/audit/actor';
import { eventually } from '@latchkey/testkit/eventually';
import { startTcpProxy } from '@latchkey/testkit/network/tcp-proxy';
import { holdLocks, waitersForLocks } from '@latchkey/testkit/postgres/lock-waits';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { check, loseObject } from '../../testing/damage.ts';
import { type DownloadServer, startDownloadServer } from '../../testing/download-server.ts';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { type InstanceOptions, useTestFiles } from '../../testing/test-files.ts';
import { createUploads, holdingsOf, NOTHING, ONE, reasonOf, sweepAll, type UploadOptions } from '../../testing/uploads.ts';
import { cleanUpApplication } from '../application/deleted-application.ts';
import { createDownloadHandler } from '../download/download-handler.ts';
import { type ObjectStore, objectKey } from '../object-store/object-store.ts';
import { findUnknownObjects } from '../reconciler/unknown-objects.ts';
import { createAppendUpload } from '../resumable-upload/append-upload.ts';
import { MIB } from './usage.ts';

const files = useTestFiles();
const OLD = Buffer.from('old bytes');
const NEW = Buffer.from('new bytes');
const REPLACE = { name: 'wanted', replace: true };

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest();
const storeOld = (ref: OwnedRef, bytes = OLD) => storeFile(files, ref, { name: 'wanted', bytes });
const replace = (ref: OwnedRef, bytes: Readable | Buffer = NEW, options: UploadOptions = {}) =>
  createUploads(files.ctx).upload(ref, bytes, { ...REPLACE, ...options });

async function setUp(bytes = OLD) {
  const ref = files.createOwned();
  return { ref, fileId: await storeOld(ref, bytes) };
}

/** The files of an application: id, name and bytes. */
async function contentsOf(ref: OwnedRef) {
  const { rows } = await files.db.query(
    'select id, display_name as name, coalesce(object_id, id) as object from file where application_id = $1 order by display_name',
    [ref.applicationId],
  );
  const read = async (id: string) =>
    String(await buffer((await files.ctx.store.read(objectKey(ref.applicationId, id))) as Readable));
  return Promise.all(rows.map(async ({ id, name, object }) => [id, name, await read(object)]));
}

/** Removes what is scheduled and abandoned; everything that is left must have a row. */
async function sweep(ref: OwnedRef) {
  await sweepAll(files, ref);
  for await (const { key } of findUnknownObjects(files.ctx)) expect(key).toBe('known');
  return holdingsOf(files, ref);
}

/** Sends the new bytes, of which the last come once something has happened. */
async function replaceWhile(ref: OwnedRef, happen: () => Promise<unknown> | unknown) {
  const body = new PassThrough();
  const sending = replace(ref, body);
  sending.catch(() => undefined);
  body.write(NEW);
  await eventually(async () => expect((await holdingsOf(files, ref)).objects).toBe(2));
  await happen();
  body.end();
  return sending;
}

const withStore = (changeStore: InstanceOptions['changeStore'], url = files.url) =>
  createUploads(files.connect({ url, changeStore }).ctx);

describe('a replacement', () => {
  it('gives the file another content under its id, with its counter of URLs, and removes the old object', async () => {
    const { ref, fileId } = await setUp(Buffer.alloc(3 * MIB));
    await files.client.inspectFile({ ...ref, fileId });
    await files.client.createDownloadUrl({ ...ref, fileId });
    const png = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(2 * MIB)]);
    expect(await replace(ref, png)).toEqual({ id: fileId, byteSize: BigInt(png.length), checksum: sha256(png) });
    const { files: listed } = await files.client.listFiles(ref);
    expect(listed).toMatchObject([{ id: fileId, displayName: 'wanted', contentType: 'image/png', presignedUrlsCount: 1n }]);
    expect(Buffer.from(listed[0]?.checksum ?? [])).toEqual(sha256(png));
    const { sha512 } = await files.client.inspectFile({ ...ref, fileId });
    expect(Buffer.from(sha512)).toEqual(createHash('sha512').update(png).digest());
    expect(await holdingsOf(files, ref)).toEqual({ ...ONE, chargedMib: 2 });
    const { rows } = await files.db.query('select action, changes from audit_entry where subject_id = $1', [fileId]);
    const [checksum, previousChecksum] = [png, Buffer.alloc(3 * MIB)].map((bytes) => sha256(bytes).toString('hex'));
    expect(rows).toEqual([
      { action: 'file.replaced', changes: { displayName: 'wanted', byteSize: png.length, checksum, previousChecksum } },
    ]);
    await cleanUpApplication(files.ctx, ref, () => undefined);
    expect(await sweep(ref)).toEqual(NOTHING);
  });

  it('that fails, at the latest before its commit, leaves the file as it was', async () => {
    const { ref, fileId } = await setUp();
    expect(await reasonOf(replace(ref, NEW, { expectedChecksum: sha256(OLD) }))).toBe('checksum_mismatch');
    const proxy = await startTcpProxy(files.url);
    const cut = withStore((store) => ({ put: (...args) => store.put(...args).then(() => proxy.cut()) }), proxy.url);
    expect(await reasonOf(cut.upload(ref, NEW, REPLACE))).toBe('dependency_unavailable');
    expect((await holdingsOf(files, ref)).objects).toBe(2);
    expect(await contentsOf(ref)).toEqual([[fileId, 'wanted', String(OLD)]]);
    expect(await sweep(ref)).toEqual(ONE);
  });

  it('is charged the difference, and may be as large as the file where a limit is reached or was lowered', async () => {
    const { ref, fileId } = await setUp(Buffer.alloc(3 * MIB));
    for (const STORAGE_ALLOWANCE_MIB of ['3', '1']) {
      const full = createUploads(files.connect({ env: { STORAGE_ALLOWANCE_MIB, FILE_COUNT_LIMIT: '1' } }).ctx);
      expect(await reasonOf(full.begin(ref, { ...REPLACE, byteSize: 4 * MIB }))).toBe('allowance_exceeded');
      expect(await reasonOf(full.upload(ref, Buffer.alloc(4 * MIB, 1), REPLACE))).toBe('allowance_exceeded');
      await full.upload(ref, Buffer.alloc(4 * MIB - 1, 1), REPLACE);
      expect(await reasonOf(full.begin(ref, { name: 'other' }))).toBe('file_count_exceeded');
    }
    expect((await contentsOf(ref)).map(([id]) => id)).toEqual([fileId]);
    expect(await sweep(ref)).toEqual({ ...ONE, chargedMib: 3 });
  });

  it('of a file that a published release needs is rejected before and after its bytes', async () => {
    const { ref, fileId } = await setUp();
    expect(await reasonOf(replaceWhile(ref, () => files.apps.needed.add(fileId)))).toBe('file_in_use');
    expect(await reasonOf(createUploads(files.ctx).begin(ref, REPLACE))).toBe('file_in_use');
    const resumable = files.uploads.createUpload({ ...ref, fileName: 'wanted', byteSize: 9n, replace: true });
    expect(await reasonOf(resumable)).toBe('file_in_use');
    expect(await contentsOf(ref)).toEqual([[fileId, 'wanted', String(OLD)]]);
    expect(await sweep(ref)).toEqual(ONE);
  });

  it('makes a new file where the old one is deleted or renamed while its bytes come', async () => {
    const { ref, fileId } = await setUp();
    const { id } = await replaceWhile(ref, () => files.client.deleteFile({ ...ref, fileId }));
    expect(await contentsOf(ref)).toEqual([[id, 'wanted', String(NEW)]]);
    const renamed = await replaceWhile(ref, () => files.client.renameFile({ ...ref, fileId: id, fileName: 'renamed' }));
    expect(await contentsOf(ref)).toEqual([
      [id, 'renamed', String(NEW)],
      [renamed.id, 'wanted', String(NEW)],
    ]);
    expect(await sweep(ref)).toEqual({ ...ONE, files: 2, fileCount: 2, chargedMib: 2, objects: 2 });
  });

  it('takes the file that a rename under way gives the name', async () => {
    const ref = files.createOwned();
    const id = await storeFile(files, ref, { name: 'other' });
    const lock = 'select pg_advisory_xact_lock(hashtextextended($1, 0))';
    const commit = await holdLocks(files.db, lock, [`rename/${ref.applicationId}`]);
    const sent = replace(ref);
    sent.catch(() => undefined);
    await waitersForLocks(files.db, 1);
    await commit(`update file set display_name = 'wanted' where id = '${id}'`);
    expect((await sent).id).toBe(id);
    expect(await contentsOf(ref)).toEqual([[id, 'wanted', String(NEW)]]);
  });

  it('beside deletions of the file leaves the new one or none, the right usage and no orphan', async () => {
    for (let round = 0; round < 8; round += 1) {
      const { ref, fileId } = await setUp();
      await replaceWhile(ref, () => {
        setImmediate(() => void files.client.deleteFile({ ...ref, fileId }).catch(() => undefined));
      });
      await files.client.deleteFile({ ...ref, fileId }).catch(() => undefined);
      const left = await contentsOf(ref);
      expect(left.map(([, , bytes]) => bytes)).toEqual(left.length > 0 ? [String(NEW)] : []);
      const n = left.length;
      expect(await sweep(ref)).toEqual({ files: n, pending: 0, fileCount: n, chargedMib: n, objects: n });
    }
  });

  it('is not taken for the repetition of another account holder’s upload', async () => {
    const ref = files.createOwned();
    const [first, second] = [randomUUID(), randomUUID()];
    const { client, send } = createUploads(files.ctx);
    const begin = (credentialId: string, bytes: Buffer, replace = false) =>
      client.beginUpload(
        { ...ref, fileName: 'wanted', expectedChecksum: new Uint8Array(sha256(bytes)), replace },
        { headers: { [ACTOR_HEADER]: `api_key ${credentialId} -` } },
      );
    const { id } = await send((await begin(first, OLD)).ticket, OLD);
    const replacement = await begin(second, NEW, true);
    expect([replacement.fileId, (await send(replacement.ticket, NEW)).id]).toEqual([id, id]);
    expect(await reasonOf(begin(first, NEW))).toBe('file_name_taken');
    expect(await reasonOf(begin(first, OLD))).toBe('file_name_taken');
    expect((await begin(second, NEW, true)).stored?.id).toBe(id);
  });
});

describe('a process that ends', () => {
  it('after the commit leaves the new content, and the sweeper removes the old object', async () => {
    const { ref, fileId } = await setUp();
    const proxy = await startTcpProxy(files.url);
    const lost = withStore(() => ({ remove: () => Promise.reject(new Error('killed')) }), proxy.url);
    const ticket = await lost.begin(ref, REPLACE);
    proxy.loseAnswerTo('commit');
    expect((await lost.send(ticket, NEW)).id).toBe(fileId);
    expect((await holdingsOf(files, ref)).objects).toBe(2);
    expect(await contentsOf(ref)).toEqual([[fileId, 'wanted', String(NEW)]]);
    expect(await sweep(ref)).toEqual(ONE);
    await proxy.close();
  });

  it('in apps, at the last question before the commit, is waited for', async () => {
    const { ref, fileId } = await setUp();
    const attempts = () => files.apps.replaced.filter((id) => id === fileId).length;
    const held = await files.db.connect();
    await held.query('begin');
    const sent = replaceWhile(ref, () => held.query('select from file where id = $1 for key share', [fileId]));
    await waitersForLocks(files.db, 1);
    files.apps.failWith(new ConnectError('connection refused', Code.Unavailable));
    await held.query('commit');
    held.release();
    await eventually(() => expect(attempts()).toBeGreaterThan(0));
    files.apps.failWith(undefined);
    expect((await sent).id).toBe(fileId);
    expect(await sweep(ref)).toEqual(ONE);
  });
});

describe('a download', () => {
  let server: DownloadServer;
  beforeAll(async () => {
    server = await startDownloadServer(createDownloadHandler(files.ctx));
  });
  afterAll(() => server.close());
  const urlOf = async (ref: OwnedRef, fileId: string) => (await files.client.createDownloadUrl({ ...ref, fileId })).url;

  it('that is under way ends with the old bytes, later ones by its URL are 404, and a new URL has the new ones', async () => {
    const old = Buffer.alloc(12 * MIB, 'old');
    const { ref, fileId } = await setUp(old);
    const url = await urlOf(ref, fileId);
    const { promise, resolve } = Promise.withResolvers<void>();
    const running = server.fetch(url, { onFirstBytes: resolve });
    await promise;
    await replace(ref);
    const { body, whole, headers } = await running;
    expect([whole, body.equals(old)]).toEqual([true, true]);
    for (const method of ['GET', 'HEAD'])
      expect((await server.fetch(url, { method, headers: { range: 'bytes=1-' } })).status).toBe(404);
    const renewed = await urlOf(ref, fileId);
    const conditions = { range: 'bytes=1-', 'if-none-match': headers.etag };
    for (const validator of [headers.etag, headers['last-modified']]) {
      const answer = await server.fetch(renewed, { headers: { ...conditions, 'if-range': validator } });
      expect([answer.status, answer.body]).toEqual([200, NEW]);
      expect(answer.headers.etag).toBe(`"${sha256(NEW).toString('hex')}"`);
    }
    const unchanged = await server.fetch(renewed, { headers: { 'if-modified-since': headers['last-modified'] } });
    expect(unchanged.status).toBe(200);
  });

  it('whose object is removed before it is opened gets 404', async () => {
    const { ref, fileId } = await setUp();
    const url = await urlOf(ref, fileId);
    const read: ObjectStore['read'] = async (...args) => {
      await replace(ref);
      return files.ctx.store.read(...args);
    };
    const late = await startDownloadServer(createDownloadHandler({ ...files.ctx, store: { ...files.ctx.store, read } }));
    expect((await late.fetch(url)).status).toBe(404);
    await late.close();
  });
});

describe('the reading of a file for a release', () => {
  /** Reads the file with an instance that does something before or after it opens the object. */
  const inspectWith = (
    given: OwnedRef & { fileId: string },
    read: (open: () => Promise<Readable | undefined>) => Promise<unknown>,
  ) => {
    const changeStore = (store: ObjectStore): Partial<ObjectStore> => ({
      read: (...args) => read(() => store.read(...args)) as ReturnType<ObjectStore['read']>,
    });
    return files.connect({ changeStore }).client.inspectFile(given);
  };

  it('stores no digests of a content that is replaced meanwhile', async () => {
    const { ref, fileId } = await setUp();
    await inspectWith({ ...ref, fileId }, (open) => open().finally(() => replace(ref)));
    const { sha512 } = await files.client.inspectFile({ ...ref, fileId });
    expect(Buffer.from(sha512)).toEqual(createHash('sha512').update(NEW).digest());
  });

  it('waits for a replacement before it stores digests', async () => {
    const { ref, fileId } = await setUp();
    const replacement = await files.db.connect();
    const inspection = inspectWith({ ...ref, fileId }, async (open) => {
      await replacement.query('begin');
      await replacement.query('select from file where id = $1 for update', [fileId]);
      await replacement.query('update file set object_id = gen_random_uuid() where id = $1', [fileId]);
      return open();
    });
    inspection.catch(() => undefined);
    await waitersForLocks(files.db, 1);
    await replacement.query('commit');
    replacement.release();
    await inspection;
    expect((await files.db.query('select from file_digest where file_id = $1', [fileId])).rowCount).toBe(0);
    await files.db.query('update file set object_id = null where id = $1', [fileId]);
  });

  it('goes on with the new content where the old one is gone', async () => {
    const { ref, fileId } = await setUp();
    let replaced: Promise<unknown> | undefined;
    const { checksum } = await inspectWith({ ...ref, fileId }, async (open) => {
      replaced ??= replace(ref);
      await replaced;
      return open();
    });
    expect(Buffer.from(checksum)).toEqual(sha256(NEW));
  });
});

it('a check takes no file for lost that is replaced meanwhile', async () => {
  const { ref, fileId } = await setUp();
  const read: ObjectStore['read'] = async (key, ...range) => {
    if (key === objectKey(ref.applicationId, fileId)) await replace(ref);
    return files.ctx.store.read(key, ...range);
  };
  expect((await check({ ...files.ctx, store: { ...files.ctx.store, read } })).found).toEqual([]);
});

it('a repair deletes no file that was replaced since its old object was found missing', async () => {
  const { ref, fileId } = await setUp();
  await loseObject(files, ref, fileId);
  const ctx = {
    ...files.ctx,
    store: {
      ...files.ctx.store,
      async *list() {
        await replace(ref);
        yield* files.ctx.store.list();
      },
    },
  };
  const { found } = await check(ctx, { repair: true, force: true });
  expect(found).toContain(`missing object ${fileId}`);
  expect(await contentsOf(ref)).toEqual([[fileId, 'wanted', String(NEW)]]);
  expect((await check(files.ctx)).found).toEqual([]);
});

describe('a resumable upload', () => {
  const create = (ref: OwnedRef, byteSize: number, instance = files) =>
    instance.uploads.createUpload({ ...ref, fileName: 'wanted', byteSize: BigInt(byteSize), replace: true });
  const append = ({ accountId }: OwnedRef, uploadId: string, bytes: Buffer) =>
    createAppendUpload(files.ctx)({
      ...{ accountId, uploadId, byteOffset: 0, byteSize: bytes.length, body: Readable.from([bytes]) },
      ...{ requestId: 'request-1', actor: undefined },
    });

  it('replaces the file at its end, and reserves what it grows by', async () => {
    const { ref, fileId } = await setUp(Buffer.alloc(2 * MIB));
    const bytes = Buffer.alloc(3 * MIB, 'new');
    const { upload } = await create(ref, bytes.length);
    expect(upload).toMatchObject({ fileId, isReplacement: true });
    expect(await files.client.getStorageUsage(ref)).toMatchObject({ fileCount: 1n, chargedMib: 3n });
    expect(await reasonOf(replace(ref))).toBe('file_name_taken');
    await append(ref, upload?.id ?? '', bytes);
    const { upload: finished } = await files.uploads.getUpload({ accountId: ref.accountId, uploadId: upload?.id ?? '' });
    expect(finished).toMatchObject({ fileId, checksum: sha256(bytes) });
    expect((await files.client.listFiles(ref)).files).toMatchObject([{ id: fileId, byteSize: BigInt(bytes.length) }]);
    expect(await sweep(ref)).toEqual({ ...ONE, chargedMib: 3 });
  });

  it('makes a new file where the old one is deleted meanwhile', async () => {
    const { ref, fileId } = await setUp();
    const { upload } = await create(ref, NEW.length);
    await files.client.deleteFile({ ...ref, fileId });
    const finished = await append(ref, upload?.id ?? '', NEW);
    expect(finished.fileId).toBeNull();
    expect(await contentsOf(ref)).toEqual([[upload?.id, 'wanted', String(NEW)]]);
    expect(await sweep(ref)).toEqual(ONE);
  });
});
