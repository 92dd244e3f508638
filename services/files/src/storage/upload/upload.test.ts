import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { ACTOR_HEADER } from '@latchkey/audit/actor';
import { eventually } from '@latchkey/testkit/eventually';
import { statementsOf } from '@latchkey/testkit/postgres/statements';
import { NOT_FOUND, refusalOf } from '@latchkey/testkit/refusal';
import { beforeAll, describe, expect, it } from 'vitest';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { useTestFiles } from '../../testing/test-files.ts';
import {
  createUploads,
  expireLease,
  holdingsOf,
  NOTHING,
  ONE,
  reasonOf,
  setDeadline,
  type Uploads,
} from '../../testing/uploads.ts';
import { objectKey } from '../object-store/object-store.ts';
import { sweepAbandonedUploads } from './receive-upload.ts';
import { MIB } from './usage.ts';

const files = useTestFiles();
let uploads: Uploads;
beforeAll(() => {
  uploads = createUploads(files.ctx);
});

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest();
const SOME = Buffer.from('some bytes');

/** An instance with other limits, on the same database and folder. */
const withLimits = (env: Record<string, string>) => createUploads(files.connect({ env }).ctx);

const isStored = (ref: OwnedRef) => eventually(async () => (await holdingsOf(files, ref)).objects === 1);

describe('an upload', () => {
  it('stores the bytes, responds with their size and SHA-256, and makes the row', async () => {
    const ref = files.createOwned();
    const bytes = randomBytes(3 * MIB + 7);
    const body = Readable.from([bytes.subarray(0, 10), bytes.subarray(10, MIB), bytes.subarray(MIB)]);
    const expected = { byteSize: bytes.byteLength, expectedChecksum: sha256(bytes) };
    const { id, byteSize, checksum } = await uploads.upload(ref, body, { name: ' my\u200b file.bin ', ...expected });
    expect([byteSize, checksum]).toEqual([BigInt(bytes.byteLength), sha256(bytes)]);
    expect(await buffer((await files.ctx.store.read(objectKey(ref.applicationId, id))) as Readable)).toEqual(bytes);
    const [row] = (await uploads.client.listFiles(ref)).files;
    expect(row).toMatchObject({ id, displayName: 'my file.bin', byteSize, contentType: 'application/octet-stream' });
    expect(Buffer.from(row?.checksum ?? [])).toEqual(checksum);
    expect(await holdingsOf(files, ref)).toEqual({ ...ONE, chargedMib: 3 });
  });

  it.each([
    ['image/png', '89504e470d0a1a0a'],
    ['application/zip', '504b0304'],
  ])('has the content type of its first bytes, %s', async (contentType, start) => {
    const ref = files.createOwned();
    const bytes = Buffer.concat([Buffer.from(start, 'hex'), Buffer.alloc(5_000)]);
    await uploads.upload(ref, Readable.from([bytes.subarray(0, 3), bytes.subarray(3)]));
    expect((await uploads.client.listFiles(ref)).files[0]).toMatchObject({ contentType });
  });

  it('is rejected alike for applications that are foreign, deleted or no UUID', async () => {
    const { accountId } = files.createOwned();
    const gone = files.createOwned(accountId);
    files.apps.delete(gone.applicationId);
    for (const applicationId of [files.createOwned().applicationId, gone.applicationId, 'x', '\0']) {
      expect(await refusalOf(uploads.begin({ accountId, applicationId }))).toEqual(NOT_FOUND);
    }
  });

  it('is rejected in the order of its checks', async () => {
    const ref = files.createOwned();
    const { begin, upload } = withLimits({ FILE_COUNT_LIMIT: '1', FILE_SIZE_LIMIT_MIB: '1' });
    await upload(ref, SOME, { name: 'taken' });
    const nowhere = { ...ref, applicationId: 'x' };
    expect(await reasonOf(begin(nowhere, { name: 'a..b' }))).toBe('file_name_invalid');
    expect(await reasonOf(begin(nowhere, { name: 'taken' }))).toBe('application_not_found');
    expect(await reasonOf(begin(ref, { name: 'taken', byteSize: 0 }))).toBe('file_name_taken');
    expect(await reasonOf(begin(ref, { byteSize: 0 }))).toBe('file_empty');
    expect(await reasonOf(begin(ref, { byteSize: 2 * MIB }))).toBe('file_count_exceeded');
    expect(await reasonOf(begin(files.createOwned(), { byteSize: MIB + 1 }))).toBe('file_too_large');
    for (const bad of [{ byteSize: -1 }, { expectedChecksum: Buffer.alloc(31) }]) {
      expect(await reasonOf(begin(ref, bad))).toBe('upload_malformed');
    }
    expect(await holdingsOf(files, ref)).toEqual(ONE);
  });
});

describe('an upload that is repeated with its checksum', () => {
  const announced = { name: 'release', expectedChecksum: sha256(SOME) };
  const beginAs = (ref: OwnedRef, credentialId: string, expectedChecksum = announced.expectedChecksum, more = {}) => {
    const description = { ...ref, fileName: announced.name, expectedChecksum: new Uint8Array(expectedChecksum), ...more };
    return uploads.client.beginUpload(description, { headers: { [ACTOR_HEADER]: `api_key ${credentialId} -` } });
  };

  it('is answered with the stored file for 10 minutes, to the same credential alone', async () => {
    const ref = files.createOwned();
    const credentialId = randomUUID();
    const begun = await beginAs(ref, credentialId);
    const stored = await uploads.send(begun.ticket, SOME);
    expect(stored.id).toBe(begun.fileId);
    const repeated = await beginAs(ref, credentialId);
    expect(repeated).toMatchObject({ ticket: '', stored: { id: stored.id, byteSize: stored.byteSize } });
    expect(Buffer.from(repeated.stored?.checksum ?? [])).toEqual(stored.checksum);
    const others = await Promise.all([
      reasonOf(beginAs(ref, randomUUID())),
      reasonOf(uploads.begin(ref, announced)),
      reasonOf(beginAs(ref, credentialId, sha256(Buffer.from('others')))),
      reasonOf(beginAs(ref, credentialId, Buffer.alloc(0))),
      reasonOf(beginAs(ref, credentialId, announced.expectedChecksum, { byteSize: 0n })),
    ]);
    expect(others).toEqual(Array(5).fill('file_name_taken'));
    await files.db.query(`update audit_entry set at = at - interval '10 minutes' where subject_id = $1`, [stored.id]);
    expect(await reasonOf(beginAs(ref, credentialId))).toBe('file_name_taken');
    expect(await holdingsOf(files, ref)).toEqual(ONE);
  });

  it.each([
    ['is answered with the stored file', sha256(SOME)],
    ['without it, is rejected', Buffer.alloc(0)],
  ])('%s where the first one is committed meanwhile', async (_outcome, expectedChecksum) => {
    const ref = files.createOwned();
    const credentialId = randomUUID();
    const { ticket } = await beginAs(ref, credentialId, expectedChecksum);
    const id = await storeFile(files, ref, { name: 'release', bytes: SOME });
    await files.db.query(
      `insert into audit_entry (id, account_id, action, actor, credential_id, subject, subject_id, changes)
        values (gen_random_uuid(), $1, 'file.uploaded', 'api_key', $2, 'file', $3, jsonb_build_object('checksum', $4::text))`,
      [ref.accountId, credentialId, id, sha256(SOME).toString('hex')],
    );
    const sent = uploads.send(ticket, SOME);
    if (expectedChecksum.length > 0) expect(await sent).toMatchObject({ id, checksum: sha256(SOME) });
    else expect(await reasonOf(sent)).toBe('file_name_taken');
    expect(await holdingsOf(files, ref)).toEqual(ONE);
  });
});

describe('a ticket', () => {
  it('works for one body, even when many come concurrently', async () => {
    const ref = files.createOwned();
    const ticket = await uploads.begin(ref);
    const { rows } = await files.db.query('select * from upload_intent where account_id = $1', [ref.accountId]);
    expect(JSON.stringify(rows)).not.toContain(ticket);
    const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => uploads.send(ticket, SOME)));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const used of [ticket, '', '\0', 'a'.repeat(43)]) {
      expect(await reasonOf(uploads.send(used, SOME))).toBe('upload_ticket_invalid');
    }
    expect(await holdingsOf(files, ref)).toEqual(ONE);
  });

  it('is rejected once it has expired, and the body is not read', async () => {
    const ref = files.createOwned();
    const ticket = await uploads.begin(ref);
    await expireLease(files, ref);
    const body = Readable.from([SOME]);
    expect(await reasonOf(uploads.send(ticket, body))).toBe('upload_ticket_invalid');
    expect([body.readableDidRead, body.destroyed]).toEqual([false, false]);
  });

  it('can be returned, which frees the lease, unless it is in use', async () => {
    const ref = files.createOwned();
    await uploads.client.abandonUpload({ ticket: await uploads.begin(ref) });
    expect(await holdingsOf(files, ref)).toEqual(NOTHING);
    const body = new PassThrough();
    const ticket = await uploads.begin(ref);
    const sending = uploads.send(ticket, body);
    body.write(SOME);
    await isStored(ref);
    for (const given of [ticket, '', 'x']) await uploads.client.abandonUpload({ ticket: given });
    body.end();
    await sending;
    expect(await holdingsOf(files, ref)).toEqual(ONE);
  });
});

describe('the lease', () => {
  it('admits one upload of an account, even when many begin concurrently, and says when to retry', async () => {
    const ref = files.createOwned();
    const begun = await Promise.allSettled(Array.from({ length: 50 }, () => uploads.begin(ref, { name: 'one' })));
    const tickets = begun.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    expect(tickets).toHaveLength(1);
    const refusal = await refusalOf(uploads.begin(files.createOwned(ref.accountId)));
    expect(refusal).toMatchObject({ reason: 'upload_under_way', kind: 'rate_limited', code: 'rate_limit_reached' });
    expect([...Array(10).keys()].map((i) => String(i + 1))).toContain(refusal.metadata.retryAfterSeconds);
    await uploads.send(tickets[0] as string, SOME);
    await uploads.upload(ref, SOME);
  });

  it('of a process that died is free once it expires, and its upload is never committed', async () => {
    const ref = files.createOwned();
    const frozen = new PassThrough();
    const sending = reasonOf(uploads.upload(ref, frozen));
    frozen.write(SOME);
    await isStored(ref);
    await sweepAbandonedUploads(files.ctx, new AbortController().signal);
    expect(await holdingsOf(files, ref)).toEqual({ ...NOTHING, pending: 1, objects: 1 });
    await expireLease(files, ref);
    await uploads.upload(ref, SOME);
    frozen.end();
    expect(await sending).toBe('upload_interrupted');
    expect(await holdingsOf(files, ref)).toEqual(ONE);
  });
});

describe('the limits', () => {
  it('admit the largest file and no byte more, whether its size is announced or not', async () => {
    const { upload, begin } = withLimits({ FILE_SIZE_LIMIT_MIB: '2' });
    const ref = files.createOwned();
    await upload(ref, Buffer.alloc(2 * MIB, 1));
    expect(await reasonOf(upload(ref, Buffer.alloc(2 * MIB + 1, 1)))).toBe('file_too_large');
    expect(await reasonOf(begin(ref, { byteSize: 2 * MIB + 1 }))).toBe('file_too_large');
    expect(await holdingsOf(files, ref)).toEqual({ ...ONE, chargedMib: 2 });
  });

  it('charge whole MiB rounded down, at least one, and never exceed the allowance', async () => {
    const { upload, begin, client } = withLimits({ STORAGE_ALLOWANCE_MIB: '4' });
    const ref = files.createOwned();
    await upload(ref, Buffer.alloc(1));
    await upload(files.createOwned(ref.accountId), Buffer.alloc(2 * MIB - 1));
    expect(await reasonOf(upload(ref, Buffer.alloc(3 * MIB)))).toBe('allowance_exceeded');
    expect(await reasonOf(begin(ref, { byteSize: 3 * MIB }))).toBe('allowance_exceeded');
    await upload(ref, Buffer.alloc(3 * MIB - 1));
    expect(await reasonOf(begin(ref))).toBe('allowance_exceeded');
    const usage = { chargedMib: 4n, chargedMibMax: 4n, fileCount: 3n, fileCountMax: 100n };
    expect(await client.getStorageUsage(ref)).toMatchObject(usage);
  });

  it('count the files of all applications, and from their deletion not those of deleted ones', async () => {
    const { upload, begin, client } = withLimits({ FILE_COUNT_LIMIT: '2', STORAGE_ALLOWANCE_MIB: '2' });
    const ref = files.createOwned();
    const other = files.createOwned(ref.accountId);
    for (let i = 0; i < 2; i += 1) await upload(other, SOME);
    expect(await reasonOf(begin(ref))).toBe('file_count_exceeded');
    files.apps.delete(other.applicationId);
    for (let i = 0; i < 2; i += 1) await upload(ref, SOME);
    expect(await reasonOf(begin(ref))).toBe('file_count_exceeded');
    expect(await client.getStorageUsage(ref)).toMatchObject({ chargedMib: 2n, fileCount: 2n });
  });

  it('are reported without an account and without the database', async () => {
    const sent = await statementsOf(async () =>
      expect(await files.client.getStorageUsage({ accountId: '' })).toMatchObject({ chargedMib: 0n, fileCount: 0n }),
    );
    expect(sent).toEqual([]);
  });

  it('are checked again at the end', async () => {
    const ref = files.createOwned();
    const ticket = await uploads.begin(ref);
    const { send } = withLimits({ STORAGE_ALLOWANCE_MIB: '1' });
    expect(await reasonOf(send(ticket, Buffer.alloc(2 * MIB)))).toBe('allowance_exceeded');
    expect(await holdingsOf(files, ref)).toEqual(NOTHING);
  });
});

describe('a body', () => {
  it.each([
    ['no bytes', {}, Readable.from([]), 'file_empty'],
    ['another digest than announced', { expectedChecksum: Buffer.alloc(32) }, SOME, 'checksum_mismatch'],
    ['fewer bytes than announced', { byteSize: SOME.byteLength + 1 }, SOME, 'upload_interrupted'],
    ['more bytes than announced', { byteSize: SOME.byteLength - 1 }, SOME, 'upload_interrupted'],
  ] as const)('with %s is rejected and leaves nothing', async (_, options, body, expected) => {
    const ref = files.createOwned();
    expect(await reasonOf(uploads.upload(ref, body, options))).toBe(expected);
    expect(await holdingsOf(files, ref)).toEqual(NOTHING);
  });

  it.each([0, 70_000, 3 * MIB])('cut off after %i bytes leaves nothing, and a retry is admitted immediately', async (sent) => {
    const ref = files.createOwned();
    for (const end of ['error', 'close'] as const) {
      // Like a request, it takes an error without a listener.
      const body = new PassThrough().on('error', () => undefined);
      const sending = reasonOf(uploads.upload(ref, body, { name: 'cut' }));
      if (sent > 0 && !body.write(randomBytes(sent))) await once(body, 'drain');
      body.destroy(end === 'error' ? new Error('aborted') : undefined);
      expect(await sending).toBe('upload_interrupted');
      expect(await holdingsOf(files, ref)).toEqual(NOTHING);
    }
    await uploads.upload(ref, SOME, { name: 'cut' });
  });

  it('that stalls ends at the deadline, and stays open for the response', async () => {
    const ref = files.createOwned();
    const ticket = await uploads.begin(ref);
    await setDeadline(files, ref, 100);
    const body = new PassThrough();
    body.write(SOME);
    expect(await reasonOf(uploads.send(ticket, body))).toBe('upload_timeout');
    expect(body.destroyed).toBe(false);
    expect(await holdingsOf(files, ref)).toEqual(NOTHING);
  });
});
