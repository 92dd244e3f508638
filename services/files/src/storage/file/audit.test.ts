import { createHash, randomUUID } from 'node:crypto';
import { AS_CALLER, auditReader, CALLER, type ShownEntry } from '@latchkey/audit/testing/audit-reader';
import { whileFailing } from '@latchkey/audit/testing/failing-table';
import { beforeAll, describe, expect, it } from 'vitest';
import type { OwnedRef } from '../../testing/fake-apps.ts';
import { storeFile } from '../../testing/stored-file.ts';
import { useTestFiles } from '../../testing/test-files.ts';
import { createUploads, type Uploads } from '../../testing/uploads.ts';
import { cleanUpApplication } from '../application/deleted-application.ts';

const files = useTestFiles();
let uploads: Uploads;
let entriesOf: (accountId: string) => Promise<ShownEntry[]>;
beforeAll(() => {
  uploads = createUploads(files.ctx);
  entriesOf = auditReader(files.routes);
});

const BYTES = Buffer.from('the bytes of a file');

const told = (entries: readonly ShownEntry[]) => entries.map(({ action, changes }) => [action, changes]);

/** Uploads in the name of an actor; returns the file's id. */
async function uploadFor(ref: OwnedRef, name: string): Promise<string> {
  const ticket = await uploads.begin(ref, { name }, AS_CALLER);
  return (await uploads.send(ticket, BYTES)).id;
}

describe('the audit log', () => {
  it('records each change of a file: an upload for the actor that began it', async () => {
    const ref = files.createOwned();
    const fileId = await uploadFor(ref, 'release');
    await files.client.renameFile({ ...ref, fileId, fileName: 'release-2' }, AS_CALLER);
    await files.client.renameFile({ ...ref, fileId, fileName: 'release-2' }, AS_CALLER);
    await files.client.deleteFile({ ...ref, fileId }, AS_CALLER);
    const entries = await entriesOf(ref.accountId);
    const checksum = createHash('sha256').update(BYTES).digest('hex');
    expect(told(entries)).toEqual([
      ['file.uploaded', { displayName: 'release', byteSize: BYTES.length, checksum }],
      ['file.renamed', { displayName: 'release-2', previous: 'release' }],
      ['file.deleted', { displayName: 'release-2' }],
    ]);
    const { credentialId, address, requestId } = CALLER;
    for (const entry of entries) {
      const subject = `file ${fileId}`;
      expect(entry).toMatchObject({ actor: 'session', credentialId, address, subject, applicationId: ref.applicationId });
    }
    // The bytes of an upload come with a request id of their own; the gateway gives both the same.
    expect(entries.map((entry) => entry.requestId)).toEqual(['request-1', requestId, requestId]);
  });

  it('records nothing that is read, rejected or abandoned', async () => {
    const ref = files.createOwned();
    await uploadFor(ref, 'there');
    const before = await entriesOf(ref.accountId);
    await files.client.listFiles(ref, AS_CALLER);
    const ticket = await uploads.begin(ref, { name: 'empty' }, AS_CALLER);
    await expect(uploads.send(ticket, Buffer.alloc(0))).rejects.toThrow();
    await files.client.abandonUpload({ ticket: await uploads.begin(ref, {}, AS_CALLER) }, AS_CALLER);
    const nothing = { ...ref, fileId: randomUUID() };
    const refused = [
      uploads.begin(ref, { name: 'there' }, AS_CALLER),
      files.client.renameFile({ ...nothing, fileName: 'other' }, AS_CALLER),
      files.client.deleteFile(nothing, AS_CALLER),
    ];
    expect((await Promise.allSettled(refused)).map(({ status }) => status)).toEqual(Array(3).fill('rejected'));
    expect(await entriesOf(ref.accountId)).toEqual(before);
  });

  it('records the files that are deleted with their application as deleted by the service', async () => {
    const ref = files.createOwned();
    const ids = [await uploadFor(ref, 'one'), await uploadFor(ref, 'two')];
    const before = await entriesOf(ref.accountId);
    for (let i = 0; i < 2; i += 1) await cleanUpApplication(files.ctx, ref, () => undefined);
    const entries = (await entriesOf(ref.accountId)).slice(before.length);
    expect(entries.map(({ subject }) => subject).toSorted()).toEqual(ids.map((id) => `file ${id}`).toSorted());
    for (const { action, actor, changes } of entries) {
      expect([action, actor, changes.because]).toEqual(['file.deleted', 'service', 'application.deleted']);
    }
    expect((await entriesOf(ref.accountId)).slice(0, before.length)).toEqual(before);
  });

  it('records an entry and its change together or not at all', async () => {
    const ref = files.createOwned();
    const fileId = await storeFile(files, ref, { name: 'kept' });
    const rename = () => files.client.renameFile({ ...ref, fileId, fileName: 'renamed' }, AS_CALLER);
    const state = async () => (await files.db.query('select display_name from file where id = $1', [fileId])).rows;
    for (const table of ['file', 'audit_entry']) {
      await whileFailing(files.db, { table, when: 'commit' }, async () => {
        await expect(rename()).rejects.toThrow();
        await expect(files.client.deleteFile({ ...ref, fileId }, AS_CALLER)).rejects.toThrow();
        await expect(uploadFor(ref, 'never')).rejects.toThrow();
      });
      expect(await entriesOf(ref.accountId)).toEqual([]);
      expect(await state()).toEqual([{ display_name: 'kept' }]);
    }
    await rename();
    expect(await entriesOf(ref.accountId)).toHaveLength(1);
  });
});
