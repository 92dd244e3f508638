import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { PassThrough, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { Upload } from '@latchkey/proto/latchkey/files/v1/upload_pb';
import { eventually } from '@latchkey/testkit/eventually';
import { statementsOf } from '@latchkey/testkit/postgres/statements';
import { startFauxqs } from 'fauxqs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { FilesContext } from '../../context.ts';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { listOf } from '../../testing/object-store/object-store-contract.ts';
import { holdProcessLock, type InstanceOptions, useTestFiles } from '../../testing/test-files.ts';
import { createUploads, holdingsOf, NOTHING, ONE, reasonOf, sweepAll } from '../../testing/uploads.ts';
import { cleanUpApplication } from '../application/deleted-application.ts';
import { sweepObjectDeletions } from '../object-deletion/object-deletion.ts';
import { type ObjectStore, objectKey } from '../object-store/object-store.ts';
import { findUnknownObjects } from '../reconciler/unknown-objects.ts';
import { MIB } from '../upload/usage.ts';
import { type Chunk, createAppendUpload } from './append-upload.ts';
import { CLAIM_MS } from './resumable-upload.store.ts';
import { sweepResumableUploads } from './resumable-upload.ts';

const files = useTestFiles();
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest();

let serial = 0;
async function create(ref: OwnedRef, byteSize: number, more: object = {}, instance = files): Promise<Upload> {
  serial += 1;
  const description = { ...ref, fileName: `file-${serial}`, byteSize: BigInt(byteSize), ...more };
  return (await instance.uploads.createUpload(description)).upload as Upload;
}

/** Sends a chunk with the service, or another instance of it. */
function append(
  { accountId }: OwnedRef,
  { id }: Upload,
  byteOffset: number,
  given: Readable | Uint8Array,
  options?: InstanceOptions,
  more: Partial<Chunk> & { readonly ctx?: FilesContext } = {},
) {
  const { ctx = options ? files.connect(options).ctx : files.ctx } = more;
  const body = given instanceof Readable ? given : Readable.from(given.length > 0 ? [given] : []);
  const byteSize = given instanceof Readable ? undefined : given.length;
  const chunk = { accountId, uploadId: id, byteOffset, byteSize, body, requestId: 'request-1', ...more };
  return createAppendUpload(ctx)(chunk);
}

const offsetOf = async ({ accountId }: OwnedRef, { id }: Upload) =>
  Number((await files.uploads.getUpload({ accountId, uploadId: id })).upload?.byteOffset);

const bytesOf = async ({ applicationId }: OwnedRef, { id }: Upload) =>
  buffer((await files.ctx.store.read(objectKey(applicationId, id))) as Readable);

/** Rows and objects left of an application after a sweep. */
async function holdings(ref: OwnedRef) {
  await sweepResumableUploads(files.ctx, new AbortController().signal);
  await sweepAll(files, ref);
  return holdingsOf(files, ref);
}

const age = (hours: number) =>
  files.db.query('update resumable_upload set expires_at = expires_at - make_interval(hours => $1)', [hours]);

/** True if a file of this size could be uploaded now. */
const fits = (ref: OwnedRef, byteSize: number, env: Record<string, string>) => {
  serial += 1;
  return createUploads(files.connect({ env }).ctx).begin(ref, { byteSize, name: `probe-${serial}` });
};

describe('an upload in chunks', () => {
  it('goes on in other processes, and makes the file with its digest and type', async () => {
    const ref = files.createOwned();
    const png = Buffer.concat([
      Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'),
      Buffer.alloc(5_000),
      randomBytes(3 * MIB),
    ]);
    const upload = await create(ref, png.length, { expectedChecksum: new Uint8Array(sha256(png)) });
    for (const [from, to] of [
      [0, 3],
      [3, MIB],
      [MIB, png.length],
    ] as const) {
      const { byteOffset } = await append(ref, upload, from, png.subarray(from, to), {});
      expect(byteOffset).toBe(to);
    }
    expect(png.equals(await bytesOf(ref, upload))).toBe(true);
    const [file] = (await files.client.listFiles(ref)).files;
    expect(file).toMatchObject({ id: upload.id, displayName: upload.fileName, contentType: 'image/png' });
    expect(Buffer.from(file?.checksum ?? [])).toEqual(sha256(png));
    expect(await holdings(ref)).toEqual({ ...ONE, chargedMib: 3 });
  });

  it('remembers for a day that it is finished, and takes an empty chunk at its end', async () => {
    const ref = files.createOwned();
    const upload = await create(ref, 5);
    await append(ref, upload, 0, Buffer.from('bytes'));
    const finished = await append(ref, upload, 5, Buffer.alloc(0));
    expect(finished).toMatchObject({ id: upload.id, byteOffset: 5, checksum: sha256(Buffer.from('bytes')) });
    await age(25);
    await sweepResumableUploads(files.ctx, new AbortController().signal);
    expect(await reasonOf(offsetOf(ref, upload))).toBe('upload_not_found');
    expect(await holdings(ref)).toEqual(ONE);
  });

  it('keeps what arrived of a chunk that broke off', async () => {
    const ref = files.createOwned();
    const bytes = randomBytes(11 * MIB);
    const upload = await create(ref, bytes.length);
    const body = new PassThrough();
    body.write(bytes.subarray(0, 10 * MIB + 7), () => body.destroy());
    expect(await reasonOf(append(ref, upload, 0, body))).toBe('upload_interrupted');
    expect(await offsetOf(ref, upload)).toBe(10 * MIB + 7);
    await append(ref, upload, 10 * MIB + 7, bytes.subarray(10 * MIB + 7));
    expect(bytes.equals(await bytesOf(ref, upload))).toBe(true);
  });

  it('keeps what arrived until the deadline of a chunk', async () => {
    const ref = files.createOwned();
    const upload = await create(ref, 10);
    const body = new PassThrough();
    body.write('bytes');
    expect(await reasonOf(append(ref, upload, 0, body, { limits: { uploadDeadlineMs: 500 } }))).toBe('upload_timeout');
    expect(await offsetOf(ref, upload)).toBe(5);
  });

  it('rejects a chunk at another offset, one that is too long, and one of another account', async () => {
    const ref = files.createOwned();
    const upload = await create(ref, 5);
    expect(await reasonOf(append(ref, upload, 1, Buffer.from('x')))).toBe('offset_mismatch');
    expect(await reasonOf(append(ref, upload, 0, Buffer.from('longer')))).toBe('chunk_too_long');
    expect(await reasonOf(append(ref, upload, 0, Readable.from([Buffer.from('longer')])))).toBe('chunk_too_long');
    expect(await reasonOf(append(files.createOwned(), upload, 0, Buffer.from('x')))).toBe('upload_not_found');
    expect(await reasonOf(append(ref, { ...upload, id: 'x' }, 0, Buffer.from('x')))).toBe('upload_not_found');
    await append(ref, upload, 0, Buffer.from('bytes'));
    expect(await reasonOf(append(ref, upload, 5, Buffer.from('x')))).toBe('chunk_too_long');
  });

  it('takes one chunk at a time', async () => {
    const ref = files.createOwned();
    const upload = await create(ref, 10);
    const body = new PassThrough();
    const first = append(ref, upload, 0, body);
    body.write('bytes');
    await eventually(async () => (await reasonOf(append(ref, upload, 0, Buffer.from('bytes'), {}))) === 'upload_locked');
    body.end('other');
    expect(await first).toMatchObject({ byteOffset: 10, state: 'stored' });
  });

  it('is removed where the whole has another digest than announced', async () => {
    const ref = files.createOwned();
    const upload = await create(ref, 5, { expectedChecksum: new Uint8Array(32) });
    // The claim is due for renewal while the object is removed.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const changeStore = (store: ObjectStore): Partial<ObjectStore> => ({
      async remove(...keys) {
        vi.advanceTimersByTime(CLAIM_MS);
        await delay(100);
        await store.remove(...keys);
      },
    });
    const sent = append(ref, upload, 0, Buffer.from('bytes'), { changeStore });
    expect(await reasonOf(sent)).toBe('upload_checksum_mismatch');
    expect(await reasonOf(offsetOf(ref, upload))).toBe('upload_expired');
    expect(await holdings(ref)).toEqual(NOTHING);
    await create(ref, 5, { fileName: upload.fileName });
  });

  it.each([
    ['with its application', 'application_not_found', 'upload_not_found', false],
    ['with its application', 'application_not_found', 'upload_not_found', true],
    ['by its deletion', 'upload_expired', 'upload_expired', true],
  ])('ends %s in the middle of a chunk: %s', async (_by, reason, reasonLater, isAtEnd) => {
    const ref = files.createOwned();
    const upload = await create(ref, 10);
    const body = new PassThrough();
    body.write('bytes');
    const sent = reasonOf(append(ref, upload, 0, body));
    await eventually(async () => {
      const { rows } = await files.db.query('select 1 from resumable_upload where id = $1 and claim_id is not null', [upload.id]);
      return rows.length === 1;
    });
    if (reason === 'upload_expired') await files.uploads.endUpload({ accountId: ref.accountId, uploadId: upload.id });
    else {
      files.apps.delete(ref.applicationId);
      await cleanUpApplication(files.ctx, ref, () => undefined);
    }
    if (isAtEnd) body.end('other');
    expect([await sent, await reasonOf(offsetOf(ref, upload))]).toEqual([reason, reasonLater]);
    expect(await holdings(ref)).toEqual(NOTHING);
  });
});

describe('a chunk with an idempotency key', () => {
  const MORE = { checksum: sha256(Buffer.from('bytes')) };

  function keyed(ref: OwnedRef, upload: Upload) {
    const idempotency = { 'idempotency-key': randomUUID(), 'x-latchkey-idempotency': 'cHJpbnQ PATCH:/uploads/:id' };
    const find = (headers: Record<string, string> = idempotency) =>
      files.uploads.getUpload({ accountId: ref.accountId, uploadId: upload.id, repeatsAppend: true }, { headers });
    const send = (more: Parameters<typeof append>[5] = {}, given: Readable | Uint8Array = Buffer.from('bytes')) =>
      append(ref, upload, 0, given, undefined, { idempotency, ...MORE, ...more });
    return { idempotency, find, send };
  }

  it('costs two statements, and is repeated as it was after other chunks', async () => {
    const ref = files.createOwned();
    const [upload, other] = [await create(ref, 10), await create(ref, 10)];
    const { idempotency, find, send } = keyed(ref, upload);
    const plain = await statementsOf(async () => {
      await files.uploads.getUpload({ accountId: ref.accountId, uploadId: other.id });
      await append(ref, other, 0, Buffer.from('bytes'));
    });
    const statements = await statementsOf(async () => {
      expect((await find()).upload?.byteOffset).toBe(0n);
      await send();
    });
    const ends = statements.filter(({ text }) => text === 'begin' || text === 'commit');
    expect(statements.length - ends.length - plain.length).toBe(2);
    await append(ref, upload, 5, Buffer.from('bytes'));
    const { upload: found } = await find();
    expect([found?.byteOffset, found?.checksum.byteLength]).toEqual([5n, 0]);
    const elsewhere = { ...idempotency, 'x-latchkey-idempotency': 'b3RoZXI PATCH:/uploads/:id' };
    expect(await reasonOf(find(elsewhere))).toBe('idempotency_key_reused');
  });

  it('leaves all of its bytes or none', async () => {
    const ref = files.createOwned();
    const upload = await create(ref, 12 * MIB);
    const { find, send } = keyed(ref, upload);
    expect(await reasonOf(send({}, randomBytes(11 * MIB)))).toBe('checksum_mismatch');
    expect([await offsetOf(ref, upload), (await find()).upload?.byteOffset]).toEqual([0, 0n]);
    expect((await send()).byteOffset).toBe(5);
  });

  it('is rejected while it runs, and takes over once its process has ended', async () => {
    const ref = files.createOwned();
    const upload = await create(ref, 10);
    const { send } = keyed(ref, upload);
    const { ctx } = files.connect();
    await holdProcessLock(ctx);
    const body = new PassThrough();
    const first = send({ ctx }, body);
    const claimed = 'select from resumable_upload where id = $1 and claim_id is not null';
    await eventually(async () => (await files.db.query(claimed, [upload.id])).rowCount === 1, { timeoutMs: 15_000 });
    expect(await reasonOf(send())).toBe('idempotency_in_progress');
    expect(await reasonOf(append(ref, upload, 0, Buffer.from('bytes')))).toBe('upload_locked');
    await ctx.processLock.stop();
    await eventually(async () => expect((await send()).byteOffset).toBe(5), { timeoutMs: 15_000 });
    body.end('bytes');
    expect([(await first).byteOffset, await offsetOf(ref, upload)]).toEqual([5, 5]);
  });
});

describe('a claim that was not released', () => {
  it('cannot damage what follows: its process may go on writing', async () => {
    const ref = files.createOwned();
    const upload = await create(ref, 10);
    await append(ref, upload, 0, Buffer.from('0123'));
    const stale = new PassThrough();
    // The process stands still: its claim is not renewed, and the store holds its open file.
    const held = Promise.withResolvers<void>();
    const changeStore = (store: ObjectStore): Partial<ObjectStore> => ({
      append: (key, from, body, ...rest) => store.append(key, from, holdBack(body, held.promise), ...rest),
    });
    const late = reasonOf(append(ref, upload, 4, stale, { changeStore }));
    stale.end('xxxxxx');
    await eventually(async () => {
      const { rows } = await files.db.query(
        "update resumable_upload set lease_until = now() - interval '1 hour' where id = $1 and claim_id is not null returning 1",
        [upload.id],
      );
      return rows.length === 1;
    });
    await append(ref, upload, 4, Buffer.from('456789'), {});
    held.resolve();
    expect(await late).toMatch(/upload_interrupted|upload_expired/);
    expect((await bytesOf(ref, upload)).toString()).toBe('0123456789');
    expect(await holdings(ref)).toEqual(ONE);
  });
});

describe('a chunk whose end in the store is not known', () => {
  it('leaves no object of its tail', async () => {
    const ref = files.createOwned();
    const upload = await create(ref, 10);
    // As S3 holds the bytes after the last part. The response is lost.
    const changeStore = (store: ObjectStore): Partial<ObjectStore> => ({
      async append(_key, _from, body, signal, options) {
        await store.put(objectKey(ref.applicationId, options.writerId), body, signal);
        throw new Error('refused by the test');
      },
    });
    expect(await reasonOf(append(ref, upload, 0, Buffer.from('bytes'), { changeStore }))).toBe('dependency_unavailable');
    await append(ref, upload, 0, Buffer.from('0123456789'));
    expect(await holdings(ref)).toEqual(ONE);
  });
});

it('leaves one object on S3, which holds the bytes after a part apart', async () => {
  const fauxqs = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false });
  const endpoint = `http://127.0.0.1:${fauxqs.port}`;
  const keys = { S3_ACCESS_KEY_ID: 'any', S3_SECRET_ACCESS_KEY: 'not-checked', S3_FORCE_PATH_STYLE: 'true' };
  const { ctx } = files.connect({ env: { OBJECT_STORE: 's3', S3_ENDPOINT: endpoint, S3_BUCKET: 'objects', ...keys } });
  await fetch(`${endpoint}/objects`, { method: 'PUT' });
  const ref = files.createOwned();
  const bytes = randomBytes(7 * MIB);
  const upload = await create(ref, bytes.length);
  for (const from of [0, 3, 6]) await append(ref, upload, from * MIB, bytes.subarray(from * MIB, (from + 3) * MIB), {}, { ctx });
  await files.db.query('update object_deletion set due_at = now()');
  await sweepObjectDeletions(ctx, new AbortController().signal);
  const key = objectKey(ref.applicationId, upload.id);
  expect(await listOf(ctx.store, '')).toEqual([{ key, byteSize: bytes.length, unfinished: false }]);
  expect(bytes.equals(await buffer((await ctx.store.read(key)) as Readable))).toBe(true);
  await fauxqs.stop();
});

async function* holdBack(body: AsyncIterable<Uint8Array>, until: Promise<void>): AsyncGenerator<Uint8Array> {
  await until;
  yield* body;
}

describe('a failed commit', () => {
  it('loses nothing: an empty chunk repeats it', async () => {
    const ref = files.createOwned();
    const upload = await create(ref, 5);
    const changeStore = () => ({ read: () => Promise.reject(new Error('refused by the test')) });
    expect(await reasonOf(append(ref, upload, 0, Buffer.from('bytes'), { changeStore }))).toBe('dependency_unavailable');
    expect(await offsetOf(ref, upload)).toBe(5);
    expect((await files.client.listFiles(ref)).files).toEqual([]);
    expect(await append(ref, upload, 5, Buffer.alloc(0))).toMatchObject({ state: 'stored' });
    expect(await holdings(ref)).toEqual(ONE);
  });

  it('ends the upload where its bytes are lost, as after a restore', async () => {
    const ref = files.createOwned();
    const upload = await create(ref, 10);
    await append(ref, upload, 0, Buffer.from('bytes'));
    await files.ctx.store.remove(objectKey(ref.applicationId, upload.id));
    expect(await reasonOf(append(ref, upload, 5, Buffer.from('other')))).toBe('upload_expired');
    expect(await holdings(ref)).toEqual(NOTHING);
  });
});

describe('an unfinished upload', () => {
  const ENV = { STORAGE_ALLOWANCE_MIB: '10', FILE_COUNT_LIMIT: '3' };

  it('reserves its name, its storage and a file, until it is ended', async () => {
    const ref = files.createOwned();
    const upload = await create(ref, 8 * MIB, {}, { ...files, ...files.connect({ env: ENV }) });
    const { client } = files;
    expect(await reasonOf(fits(ref, 3 * MIB, ENV))).toBe('allowance_exceeded');
    expect(await client.getStorageUsage(ref)).toMatchObject({ chargedMib: 8n, fileCount: 1n });
    expect(await reasonOf(client.checkFileName({ ...ref, fileName: upload.fileName }))).toBe('file_name_taken');
    expect(await reasonOf(create(ref, 1, { fileName: upload.fileName }))).toBe('file_name_taken');
    const { id: fileId } = await createUploads(files.ctx).upload(ref, Buffer.from('x'));
    expect(await reasonOf(client.renameFile({ ...ref, fileId, fileName: upload.fileName }))).toBe('file_name_taken');
    await append(ref, upload, 0, Buffer.from('bytes'));
    await files.uploads.endUpload({ accountId: ref.accountId, uploadId: upload.id });
    await client.renameFile({ ...ref, fileId, fileName: upload.fileName });
    expect(await reasonOf(files.uploads.endUpload({ accountId: ref.accountId, uploadId: upload.id }))).toBe('upload_expired');
    expect(await holdings(ref)).toEqual(ONE);
    await fits(ref, 9 * MIB, ENV);
  });

  it('reserves nothing once it has expired, and leaves nothing', async () => {
    const ref = files.createOwned();
    const upload = await create(ref, 8 * MIB);
    await append(ref, upload, 0, Buffer.from('bytes'));
    await age(25);
    expect(await reasonOf(offsetOf(ref, upload))).toBe('upload_expired');
    await fits(ref, 10 * MIB, ENV);
    await create(ref, 1, { fileName: upload.fileName });
    expect((await files.uploads.listUploads(ref)).uploads).toHaveLength(1);
    await age(25);
    expect(await holdings(ref)).toEqual(NOTHING);
  });

  it('is one of four at most, and the others are rejected in the order of the checks', async () => {
    const ref = files.createOwned();
    const taken = await create(ref, 1);
    for (let count = 1; count < 4; count += 1) await create(ref, 1);
    expect((await files.uploads.listUploads(ref)).uploads.map(({ id }) => id)[0]).toBe(taken.id);
    expect(await reasonOf(create({ ...ref, applicationId: 'x' }, 0, { fileName: 'a..b' }))).toBe('file_name_invalid');
    expect(await reasonOf(create({ ...ref, applicationId: 'x' }, 0))).toBe('application_not_found');
    expect(await reasonOf(create(ref, 0, { fileName: taken.fileName }))).toBe('file_name_taken');
    expect(await reasonOf(create(ref, 0))).toBe('file_empty');
    expect(await reasonOf(create(ref, 151 * MIB))).toBe('file_too_large');
    expect(await reasonOf(create(ref, 1))).toBe('too_many_uploads');
    const race = files.createOwned();
    const raced = await Promise.allSettled([1, 2, 3, 4, 5, 6].map(() => create(race, 1)));
    expect(raced.filter(({ status }) => status === 'fulfilled')).toHaveLength(4);
  });

  it('is not an unknown object', async () => {
    const ref = files.createOwned();
    await append(ref, await create(ref, 10), 0, Buffer.from('bytes'));
    const unknown: string[] = [];
    for await (const { key } of findUnknownObjects(files.ctx)) unknown.push(key);
    expect(unknown.filter((key) => key.startsWith(ref.applicationId))).toEqual([]);
  });
});
