import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { explain, type PlanCacheMode, type PlanNode, type Statement, statementsOf } from '@latchkey/testkit/postgres/statements';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { selectHalfDeleted } from '../storage/application/deleted-application.store.ts';
import { purgeTombstones } from '../storage/application/deleted-application.ts';
import { lockNamedFile, selectFileOfObject } from '../storage/file/file.store.ts';
import { claimObjectDeletions } from '../storage/object-deletion/object-deletion.store.ts';
import { createAppendUpload } from '../storage/resumable-upload/append-upload.ts';
import { sweepResumableUploads } from '../storage/resumable-upload/resumable-upload.ts';
import type { OwnedRef } from '../testing/fake-apps.ts';
import { storeFile } from '../testing/stored-file.ts';
import { type FilesInstance, startTestFiles, type TestFiles } from '../testing/test-files.ts';

const APPLICATIONS = 5;
const FILES = 30_000;

let files: TestFiles;
/** An application of a fifth of all files, and one of them. */
let ref: OwnedRef;
let fileId: string;
let uploadId: string;
let roomy: FilesInstance;
const statements = new Map<string, Statement[]>();
beforeAll(async () => {
  files = await startTestFiles();
  ref = files.createOwned();
  fileId = await storeFile(files, ref);
  await files.db.query(
    `insert into file (id, account_id, application_id, display_name, byte_size, checksum, content_type, created_at)
      select gen_random_uuid(), $1, case when i % $2 = 0 then $3::uuid else md5((i % $2)::text)::uuid end, 'name-' || i, i,
        sha256(i::text::bytea), 'text/plain', now() + i * interval '1 second' from generate_series(1, $4::int) i`,
    [ref.accountId, APPLICATIONS, ref.applicationId, FILES],
  );
  await files.db.query('update file set object_id = gen_random_uuid() where byte_size % 7 = 0');
  await files.db.query('insert into file_download_url select id, 1, now() from file where byte_size % 3 = 0');
  await files.db.query('delete from application_usage');
  await files.db.query(
    'insert into application_usage select application_id, account_id, count(*), count(*) from file group by application_id, account_id',
  );
  await files.db.query(
    'insert into application_usage select gen_random_uuid(), gen_random_uuid(), 1, 1 from generate_series(1, 5000)',
  );
  await files.db.query(`insert into object_deletion select gen_random_uuid()::text, now() from generate_series(1, 5000)`);
  await files.db.query(
    `insert into deleted_application select gen_random_uuid(), now() - i * interval '1 minute', now() from generate_series(1, 5000) i`,
  );
  await files.db.query(
    `insert into resumable_upload (id, account_id, application_id, display_name, byte_size, charged_mib, metadata, expires_at)
      select gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 'name', 10, 1, '', now() + i * interval '1 min'
      from generate_series(1, 5000) i`,
  );
  roomy = files.connect({ env: { FILE_COUNT_LIMIT: '1000000', STORAGE_ALLOWANCE_MIB: '1000000' } });
  const created = await roomy.uploads.createUpload({ ...ref, fileName: 'resumable', byteSize: 10n });
  uploadId = created.upload?.id ?? '';
  // No other transaction of these tables is under way, so that every page is marked as visible to
  // all.
  await files.db.query('vacuum analyze');
  for (const [name, call] of Object.entries(CALLS)) {
    const sent = await statementsOf(call);
    statements.set(
      name,
      sent.filter(({ text }) => DATA_STATEMENT.test(text)),
    );
  }
});
afterAll(() => files.stop());

const DATA_STATEMENT = /^\s*(select\b.*\bfrom\b|with|update|delete)/is;

const list = (request: object) => files.client.listFiles({ ...ref, ...request });
const LAST_PAGE = BigInt(FILES / APPLICATIONS / 10);

/** Every kind of call that reads or changes rows. */
const CALLS: Record<string, () => Promise<unknown>> = {
  'a check of a name': () => files.client.checkFileName({ ...ref, fileName: 'free' }),
  metadata: () => files.client.getFilesMetadata(ref),
  'what an account uses': () => files.client.getStorageUsage(ref),
  'a file to replace': () => lockNamedFile(files.ctx.db, ref.applicationId, 'name-5'),
  'the file of an object': () => selectFileOfObject(files.ctx.pool, fileId),
  'the first page': () => list({}),
  'a page in the middle': () => list({ page: LAST_PAGE / 2n }),
  'the last page': () => list({ page: LAST_PAGE }),
  'a page past the end': () => list({ page: 1_000_000n }),
  'a search for much': () => list({ nameContains: 'name' }),
  'a search for little': () => list({ nameContains: '2995' }),
  'a search for nothing': () => list({ nameContains: 'zzz' }),
  'a search past the end': () => list({ nameContains: 'name', page: 1_000_000n }),
  'a rename': () => files.client.renameFile({ ...ref, fileId, fileName: `renamed-${randomUUID().slice(0, 8)}` }),
  'a download URL': () => files.client.createDownloadUrl({ ...ref, fileId }),
  'unfinished uploads': () => files.uploads.listUploads(ref),
  'the creation of an upload': () =>
    roomy.uploads.createUpload({ ...ref, fileName: `new-${randomUUID().slice(0, 8)}`, byteSize: 1n }),
  'a chunk': () =>
    createAppendUpload(files.ctx)({
      ...{ accountId: ref.accountId, uploadId, byteOffset: 0, byteSize: 1, body: Readable.from([Buffer.from('x')]) },
      ...{ requestId: 'request-1', actor: undefined },
    }),
  'the end of an upload': () => files.uploads.endUpload({ accountId: ref.accountId, uploadId }),
  'a sweep of uploads': () => sweepResumableUploads(files.ctx, new AbortController().signal),
  'a deletion': () => files.client.deleteFile({ ...ref, fileId }),
  'incomplete clean-ups': () => selectHalfDeleted(files.ctx.db, 100),
  'a sweep of tombstones': () => purgeTombstones(files.ctx, new AbortController().signal),
  'a claim of objects': () => claimObjectDeletions(files.ctx.db, { limit: 100, claimMs: 1_000 }),
};

const MODES = ['force_custom_plan', 'force_generic_plan'] as const;

/** The plans of the data statements of a call. */
function plansOf(name: string, mode: PlanCacheMode): Promise<PlanNode[][]> {
  return Promise.all((statements.get(name) ?? []).map((statement) => explain(files.db, statement, mode)));
}

const scansOf = (plan: readonly PlanNode[]) =>
  plan.filter((node) => /Scan/.test(node['Node Type']) && node['Relation Name'] === 'file');

describe.each(MODES)(`with ${FILES} files and %s`, (mode) => {
  it.each(Object.keys(CALLS))('no statement of %s reads a table from end to end', async (name) => {
    const plans = await plansOf(name, mode);
    expect(plans.length).toBeGreaterThan(0);
    for (const plan of plans) {
      const whole = plan.filter((node) => node['Node Type'] === 'Seq Scan' && node['Relation Name'] !== undefined);
      expect(whole).toEqual([]);
      expect(plan.some((node) => node['Index Name'])).toBe(true);
    }
  });

  it.each([
    ['the first page', 10],
    ['a page in the middle', FILES / APPLICATIONS / 2],
    ['the last page', 10],
    ['a page past the end', 0],
  ])(
    '%s passes over no more entries than the nearer end needs, without a sort, and reads rows by their id',
    async (name, entriesMax) => {
      const [plan = []] = await plansOf(name, mode);
      const [walks, rows] = [scansOf(plan).filter(byOrder), scansOf(plan).filter((node) => !byOrder(node))];
      expect(walks.map((node) => node['Node Type'])).toEqual(['Index Only Scan', 'Index Only Scan']);
      const entries = walks.reduce((sum, node) => sum + node['Actual Rows'] * node['Actual Loops'], 0);
      expect(entries).toBeLessThanOrEqual(entriesMax);
      expect(rows).toMatchObject([{ 'Node Type': 'Index Scan', 'Index Name': 'file_pkey' }]);
      expect(sortsOf(plan)).toBeLessThanOrEqual(10);
    },
  );

  it.each(['a search for much', 'a search for little', 'a search for nothing'])(
    '%s passes over the entries of the application once, in the index alone',
    async (name) => {
      const [plan = []] = await plansOf(name, mode);
      const walks = scansOf(plan).filter(byOrder);
      for (const walk of walks) expect(walk['Node Type']).toBe('Index Only Scan');
      const entries = walks.reduce(
        (sum, node) => sum + node['Actual Loops'] * (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)),
        0,
      );
      expect(entries).toBeLessThanOrEqual(FILES / APPLICATIONS + 1);
      expect(sortsOf(plan)).toBeLessThanOrEqual(10);
    },
  );
});

const byOrder = (node: PlanNode) => node['Index Name'] === 'file_newest_first';

/** Most rows that any sort of the plan had. */
function sortsOf(plan: readonly PlanNode[]): number {
  return Math.max(0, ...plan.filter((node) => node['Node Type'] === 'Sort').map((node) => node['Actual Rows']));
}

describe('the table of files', () => {
  it('is vacuumed before its changes cost the scans of the index much, however large it is', async () => {
    const { rows } = await files.db.query(`select reloptions from pg_class where oid = 'file'::regclass`);
    expect(rows[0].reloptions).toEqual(
      expect.arrayContaining(['autovacuum_vacuum_insert_scale_factor=0', 'autovacuum_vacuum_scale_factor=0']),
    );
  });
});
