import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import { eventually } from '@latchkey/testkit/eventually';
import { NOT_FOUND, refusalOf } from '@latchkey/testkit/refusal';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { startTestFiles, type TestFiles } from '../../testing/test-files.ts';
import { createUploads, holdingsOf, NOTHING, reasonOf, type Uploads } from '../../testing/uploads.ts';
import { forgetApplication } from '../application/deleted-application.ts';
import { MIB } from '../file/charge.ts';
import { objectKey } from '../object-store/object-store.ts';

let files: TestFiles;
let uploads: Uploads;
beforeAll(async () => {
  files = await startTestFiles();
  uploads = createUploads(files.ctx);
});
afterAll(() => files.stop());

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest();
const reason = async (call: Promise<unknown>) => (await refusalOf(call)).reason;
const SOME = Buffer.from('some bytes');

/** An instance with other limits, on the same database and folder. */
const withLimits = (env: Record<string, string>) => createUploads(files.connect({ env }).ctx);

async function bytesOf(ref: OwnedRef, id: string): Promise<Buffer> {
  const stream = await files.ctx.store.read(objectKey(ref.applicationId, id));
  return Buffer.concat(await (stream as Readable).toArray());
}

describe('an upload', () => {
  it('stores the bytes, tells their size and SHA-256, and makes the row', async () => {
    const ref = files.createOwned();
    const bytes = randomBytes(3 * MIB + 7);
    const body = Readable.from([bytes.subarray(0, 10), bytes.subarray(10, MIB), bytes.subarray(MIB)]);
    const answer = await uploads.upload(ref, body, { name: ' my\u200b file.bin ' });
    expect(answer).toMatchObject({ byteSize: BigInt(bytes.byteLength), checksum: sha256(bytes) });
    expect(await bytesOf(ref, answer.id)).toEqual(bytes);
    const page = await uploads.client.listFiles(ref);
    expect(page.files).toMatchObject([
      { id: answer.id, displayName: 'my file.bin', byteSize: BigInt(bytes.byteLength), contentType: 'application/octet-stream' },
    ]);
    expect(Buffer.from(page.files[0]?.checksum ?? [])).toEqual(sha256(bytes));
    expect(await holdingsOf(files, ref)).toEqual({ files: 1, intents: 0, fileCount: 1, chargedMib: 3, objects: 1 });
  });

  it('is of the type that its first bytes tell', async () => {
    const ref = files.createOwned();
    const png = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(5_000)]);
    await uploads.upload(ref, Readable.from([png.subarray(0, 3), png.subarray(3)]));
    const { files: rows } = await uploads.client.listFiles(ref);
    expect(rows[0]?.contentType).toBe('image/png');
  });

  it.each(['', '.', 'a..b', ' . ', 'a  b', 'ä', '-.', 'abcdefghijklmnopq', 'a/b', '\0', '\ud800'])(
    'refuses the name %j',
    async (name) => {
      expect(await reason(uploads.begin(files.createOwned(), { name }))).toBe('file_name_invalid');
    },
  );

  it('is refused alike for applications of others, deleted ones and no ids at all', async () => {
    const { accountId } = files.createOwned();
    const other = files.createOwned();
    const gone = files.createOwned(accountId);
    files.apps.delete(gone.applicationId);
    for (const applicationId of [other.applicationId, gone.applicationId, 'x', '\0']) {
      expect(await refusalOf(uploads.begin({ accountId, applicationId }))).toEqual(NOT_FOUND);
    }
  });

  it('is refused in the order of its checks', async () => {
    const ref = files.createOwned();
    const { begin, upload } = withLimits({ FILE_COUNT_LIMIT: '1', FILE_SIZE_LIMIT_MIB: '1' });
    await upload(ref, SOME, { name: 'taken' });
    expect(await reason(begin({ ...ref, applicationId: 'x' }, { name: '' }))).toBe('file_name_invalid');
    expect(await reason(begin({ ...ref, applicationId: 'x' }, { name: 'taken' }))).toBe('application_not_found');
    expect(await reason(begin(ref, { name: 'taken', byteSize: 0 }))).toBe('file_name_taken');
    expect(await reason(begin(ref, { name: 'free', byteSize: 0 }))).toBe('file_empty');
    expect(await reason(begin(ref, { name: 'free', byteSize: 2 * MIB }))).toBe('file_count_exceeded');
    expect(await reason(begin(files.createOwned(), { byteSize: MIB + 1 }))).toBe('file_too_large');
    expect(await holdingsOf(files, ref)).toMatchObject({ files: 1, intents: 0 });
  });

  it.each([{ byteSize: -1 }, { expectedChecksum: Buffer.alloc(31) }])('refuses to begin with %o', async (options) => {
    expect(await reason(uploads.begin(files.createOwned(), options))).toBe('upload_malformed');
  });

  it('is refused before its application when that can’t be asked for, and leaves nothing', async () => {
    const ref = files.createOwned();
    files.apps.failWith(new Error('gone'));
    const refusal = await refusalOf(uploads.begin(ref)).finally(() => files.apps.failWith(undefined));
    expect(refusal.connectCode).toBe('Internal');
    expect(await holdingsOf(files, ref)).toEqual(NOTHING);
  });
});

describe('a ticket', () => {
  it('is good for one body, even when many come at once', async () => {
    const ref = files.createOwned();
    const ticket = await uploads.begin(ref);
    const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => uploads.send(ticket, SOME)));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await reasonOf(uploads.send(ticket, SOME))).toBe('upload_ticket_invalid');
    expect(await holdingsOf(files, ref)).toMatchObject({ files: 1, intents: 0, objects: 1 });
  });

  it.each(['', 'x', '\0', 'a'.repeat(43)])('is refused when nobody issued it: %j', async (ticket) => {
    expect(await reasonOf(uploads.send(ticket, SOME))).toBe('upload_ticket_invalid');
  });

  it('is refused once its time is over, and the body is not read', async () => {
    const ref = files.createOwned();
    const ticket = await uploads.begin(ref);
    await endLease(ref);
    const body = Readable.from([SOME]);
    expect(await reasonOf(uploads.send(ticket, body))).toBe('upload_ticket_invalid');
    expect([body.readableDidRead, body.destroyed]).toEqual([false, false]);
  });

  it('may be given back, and frees the lease at once', async () => {
    const ref = files.createOwned();
    const ticket = await uploads.begin(ref);
    await uploads.client.abandonUpload({ ticket });
    expect(await holdingsOf(files, ref)).toEqual(NOTHING);
    expect(await reasonOf(uploads.send(ticket, SOME))).toBe('upload_ticket_invalid');
    await uploads.upload(ref, SOME);
  });

  it('changes nothing when it is given back while it is used, or was never issued', async () => {
    const ref = files.createOwned();
    const body = new PassThrough();
    const ticket = await uploads.begin(ref);
    const sending = uploads.send(ticket, body);
    body.write(SOME);
    await eventually(async () => (await holdingsOf(files, ref)).objects === 1);
    for (const given of [ticket, '', 'x']) await uploads.client.abandonUpload({ ticket: given });
    body.end();
    await sending;
    expect(await holdingsOf(files, ref)).toMatchObject({ files: 1, intents: 0 });
  });

  it('is not kept as it is', async () => {
    const ref = files.createOwned();
    const ticket = await uploads.begin(ref);
    const { rows } = await files.db.query('select * from upload_intent where account_id = $1', [ref.accountId]);
    expect(JSON.stringify(rows)).not.toContain(ticket);
    await uploads.send(ticket, SOME);
  });
});

const endLease = (ref: OwnedRef) =>
  files.db.query(`update upload_intent set lease_until = now() - interval '1 second' where account_id = $1`, [ref.accountId]);

describe('the lease', () => {
  it('lets one upload of an account run at a time, and says when to try again', async () => {
    const ref = files.createOwned();
    const ticket = await uploads.begin(ref);
    const refusal = await refusalOf(uploads.begin(files.createOwned(ref.accountId)));
    expect(refusal).toMatchObject({ reason: 'upload_under_way', kind: 'rate_limited', code: 'rate_limit_reached' });
    expect(Number(refusal.metadata.retryAfterSeconds)).toBeGreaterThan(0);
    expect(Number(refusal.metadata.retryAfterSeconds)).toBeLessThanOrEqual(10);
    await uploads.send(ticket, SOME);
    await uploads.upload(ref, SOME);
  });

  it('lets one of many that begin at once in', async () => {
    const ref = files.createOwned();
    const begun = await Promise.allSettled(Array.from({ length: 50 }, () => uploads.begin(ref, { name: 'one' })));
    expect(begun.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  it('of a process that died is free once it is over, and what it had is never committed', async () => {
    const ref = files.createOwned();
    const frozen = new PassThrough();
    const ticket = await uploads.begin(ref, { name: 'frozen' });
    const sending = reasonOf(uploads.send(ticket, frozen));
    frozen.write(SOME);
    await eventually(async () => (await holdingsOf(files, ref)).objects === 1);
    await endLease(ref);
    await uploads.upload(ref, SOME, { name: 'next' });
    frozen.end();
    expect(await sending).toBe('upload_interrupted');
    expect(await holdingsOf(files, ref)).toMatchObject({ files: 1, intents: 0, fileCount: 1, objects: 1 });
  });
});

describe('the bounds of size', () => {
  it('let the largest file pass and not one byte more, whether its size is told or not', async () => {
    const { upload, begin } = withLimits({ FILE_SIZE_LIMIT_MIB: '2' });
    const ref = files.createOwned();
    await upload(ref, Buffer.alloc(2 * MIB, 1));
    expect(await reasonOf(upload(ref, Buffer.alloc(2 * MIB + 1, 1)))).toBe('file_too_large');
    expect(await reason(begin(ref, { byteSize: 2 * MIB + 1 }))).toBe('file_too_large');
    expect(await holdingsOf(files, ref)).toEqual({ files: 1, intents: 0, fileCount: 1, chargedMib: 2, objects: 1 });
  });

  it('charge whole MiB rounded down, at least one, and never exceed the allowance', async () => {
    const { upload, begin } = withLimits({ STORAGE_ALLOWANCE_MIB: '4' });
    const ref = files.createOwned();
    await upload(ref, Buffer.alloc(1));
    await upload(files.createOwned(ref.accountId), Buffer.alloc(2 * MIB - 1));
    expect(await reasonOf(upload(ref, Buffer.alloc(3 * MIB)))).toBe('allowance_exceeded');
    expect(await reason(begin(ref, { byteSize: 3 * MIB }))).toBe('allowance_exceeded');
    await upload(ref, Buffer.alloc(3 * MIB - 1));
    expect(await reason(begin(ref))).toBe('allowance_exceeded');
  });

  it('count the files of all applications, and not those of deleted ones, from the moment they are deleted', async () => {
    const { upload, begin } = withLimits({ FILE_COUNT_LIMIT: '2', STORAGE_ALLOWANCE_MIB: '2' });
    const ref = files.createOwned();
    const other = files.createOwned(ref.accountId);
    await upload(other, SOME);
    await upload(other, SOME);
    expect(await reason(begin(ref))).toBe('file_count_exceeded');
    files.apps.delete(other.applicationId);
    await upload(ref, SOME);
    await upload(ref, SOME);
    expect(await reason(begin(ref))).toBe('file_count_exceeded');
  });

  it('hold at the end too, where the limit has become lower meanwhile', async () => {
    const ref = files.createOwned();
    const ticket = await uploads.begin(ref);
    const { send } = withLimits({ STORAGE_ALLOWANCE_MIB: '1' });
    expect(await reasonOf(send(ticket, Buffer.alloc(2 * MIB)))).toBe('allowance_exceeded');
    expect(await holdingsOf(files, ref)).toEqual(NOTHING);
  });
});

describe('a body', () => {
  it.each([
    ['nothing', {}, Readable.from([]), 'file_empty'],
    ['other bytes than its digest says', { expectedChecksum: Buffer.alloc(32) }, SOME, 'checksum_mismatch'],
    ['fewer bytes than it said', { byteSize: SOME.byteLength + 1 }, SOME, 'upload_interrupted'],
    ['more bytes than it said', { byteSize: SOME.byteLength - 1 }, SOME, 'upload_interrupted'],
  ] as const)('of %s is refused and leaves nothing', async (_, options, body, expected) => {
    const ref = files.createOwned();
    expect(await reasonOf(uploads.upload(ref, body, options))).toBe(expected);
    expect(await holdingsOf(files, ref)).toEqual(NOTHING);
  });

  it('with the digest that was told is stored', async () => {
    const ref = files.createOwned();
    await uploads.upload(ref, SOME, { expectedChecksum: sha256(SOME), byteSize: SOME.byteLength });
    expect(await holdingsOf(files, ref)).toMatchObject({ files: 1 });
  });

  it.each([0, 1, 70_000, 3 * MIB])(
    'that breaks off after %i bytes leaves nothing, and a retry is taken at once',
    async (sent) => {
      const ref = files.createOwned();
      for (const end of ['error', 'close'] as const) {
        // As a request of Node's does, it takes an error without a listener.
        const body = new PassThrough().on('error', () => undefined);
        const sending = reasonOf(uploads.upload(ref, body, { name: 'cut' }));
        if (sent > 0 && !body.write(randomBytes(sent))) await once(body, 'drain');
        body.destroy(end === 'error' ? new Error('aborted') : undefined);
        expect(await sending).toBe('upload_interrupted');
        expect(await holdingsOf(files, ref)).toEqual(NOTHING);
      }
      await uploads.upload(ref, SOME, { name: 'cut' });
    },
  );

  it('that stalls is given up at the deadline, and the one who sends it can still be answered', async () => {
    const ref = files.createOwned();
    const ticket = await uploads.begin(ref);
    await files.db.query(`update upload_intent set deadline_at = now() + interval '100 ms' where account_id = $1`, [
      ref.accountId,
    ]);
    const body = new PassThrough();
    body.write(SOME);
    expect(await reasonOf(uploads.send(ticket, body))).toBe('upload_timeout');
    expect(body.destroyed).toBe(false);
    expect(await holdingsOf(files, ref)).toEqual(NOTHING);
  });
});

describe('while bytes come', () => {
  /** Begins an upload, lets something happen once bytes have been stored, and answers why it failed. */
  async function whileSending(ref: OwnedRef, name: string, happen: () => unknown): Promise<string> {
    const body = new PassThrough();
    const sending = reasonOf(uploads.upload(ref, body, { name }));
    body.write(SOME);
    await eventually(async () => (await holdingsOf(files, ref)).objects === 1);
    await happen();
    body.end();
    return sending;
  }

  it('a name that is taken meanwhile is taken', async () => {
    const ref = files.createOwned();
    const insert = () =>
      files.db.query(
        `insert into file (id, account_id, application_id, display_name, byte_size, checksum, content_type, created_at)
          values (gen_random_uuid(), $1, $2, 'wanted', 1, sha256('x'), 'text/plain', now())`,
        [ref.accountId, ref.applicationId],
      );
    expect(await whileSending(ref, 'wanted', insert)).toBe('file_name_taken');
    expect(await holdingsOf(files, ref)).toEqual({ ...NOTHING, files: 1 });
  });

  it('an application that is deleted takes no file more', async () => {
    const ref = files.createOwned();
    expect(await whileSending(ref, 'late', () => files.apps.delete(ref.applicationId))).toBe('application_not_found');
    expect(await holdingsOf(files, ref)).toEqual(NOTHING);
  });

  it('an application whose deletion was heard of takes none either, though nobody else has heard', async () => {
    const ref = files.createOwned();
    const hear = () => forgetApplication(files.ctx, ref, () => undefined);
    expect(await whileSending(ref, 'late', hear)).toBe('application_not_found');
    expect(await holdingsOf(files, ref)).toEqual(NOTHING);
  });

  it('an upload that stalls hears of the deletion when its lease is due', async () => {
    const ref = files.createOwned();
    const { upload } = createUploads(files.connect({ env: { UPLOAD_LEASE_SECONDS: '1' } }).ctx);
    const body = new PassThrough();
    const sending = reasonOf(upload(ref, body));
    body.write(SOME);
    await eventually(async () => (await holdingsOf(files, ref)).objects === 1);
    await forgetApplication(files.ctx, ref, () => undefined);
    expect(await sending).toBe('application_not_found');
    expect(body.destroyed).toBe(false);
  });
});
