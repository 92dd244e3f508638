import { hash } from 'node:crypto';
import { createReadStream, type Dirent } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { Client } from 'pg';
import { Violation } from './request.ts';

export interface Row {
  readonly id: string;
  readonly objectId: string;
  readonly accountId: string;
  readonly applicationId: string;
  readonly name: string;
  readonly byteSize: number;
  readonly checksum: string;
}

/** The objects of a store, and uploads that were never finished there. */
export interface StoreView {
  list(): Promise<{ readonly objects: ReadonlyMap<string, number>; readonly unfinished: readonly string[] }>;
  read(key: string): Promise<Readable | undefined>;
}

export interface StoredState {
  readonly rows: readonly Row[];
  /** Accounts by how many avatar images they have. */
  readonly images: ReadonlyMap<string, number>;
  /** Contradictions between rows, objects, intents and counters. */
  readonly disagreements: readonly string[];
}

const ROWS = `
  select id, coalesce(object_id, id) as "objectId", account_id as "accountId", application_id as "applicationId", display_name as name, byte_size::float8 as "byteSize",
    encode(checksum, 'hex') as checksum
  from files.file`;

const LEFTOVERS = `
  select 'intent ' || id || ' ' || state || ' of ' || application_id as text from files.upload_intent
  union all select 'deletion of ' || object_key from files.object_deletion`;

/** Usage as counted and as charged. One statement, so that all of it is of one moment. */
const USAGE = `
  select coalesce(f.application_id, u.application_id) as "applicationId", coalesce(f.account_id, u.account_id) as "accountId",
    coalesce(f.files, 0)::float8 as files, coalesce(f.mib, 0)::float8 as mib,
    coalesce(u.file_count, 0)::float8 as "countedFiles", coalesce(u.charged_mib, 0)::float8 as "countedMib"
  from (
    select application_id, account_id, count(*) as files, sum(greatest(1, byte_size / 1048576)) as mib
    from files.file group by application_id, account_id
  ) f full join files.application_usage u using (application_id)`;

interface Usage {
  readonly applicationId: string;
  readonly accountId: string;
  readonly files: number;
  readonly mib: number;
}

/** @throws {Violation} when a counter differs from the rows */
export async function readUsage(database: Client): Promise<Usage[]> {
  const { rows } = await database.query<Usage & { countedFiles: number; countedMib: number }>(USAGE);
  const wrong = rows.find(({ files, mib, countedFiles, countedMib }) => files !== countedFiles || mib !== countedMib);
  if (wrong) throw new Violation(`A counter is wrong: ${JSON.stringify(wrong)}`);
  return rows;
}

/** Compares rows and objects, at a time without requests. */
export async function readStoredState(database: Client, store: StoreView, accountIds: readonly string[]): Promise<StoredState> {
  const { objects, unfinished } = await store.list();
  const { rows } = await database.query<Row>(ROWS);
  const { rows: leftovers } = await database.query<{ text: string }>(LEFTOVERS);
  await readUsage(database);
  const disagreements = [...leftovers.map(({ text }) => text), ...unfinished];
  const keys = new Set(rows.map(keyOf));
  for (const row of rows) {
    const byteSize = objects.get(keyOf(row));
    if (byteSize !== row.byteSize)
      disagreements.push(`row ${keyOf(row)} ${row.name} of ${row.byteSize} bytes, object of ${byteSize}`);
  }
  const images = new Map<string, number>();
  for (const key of objects.keys()) {
    const accountId = accountIds.find((id) => key.startsWith(id));
    if (accountId) images.set(accountId, (images.get(accountId) ?? 0) + 1);
    else if (!keys.has(key)) disagreements.push(`object without row: ${key}`);
  }
  return { rows, images, disagreements };
}

/** @throws {Violation} for an object whose bytes do not have the checksum of its row */
export async function checkBytes(rows: readonly Row[], store: StoreView): Promise<void> {
  for (const row of rows) {
    const body = await store.read(keyOf(row));
    if (!body || hash('sha256', await buffer(body)) !== row.checksum)
      throw new Violation(`Other bytes: ${keyOf(row)} ${row.name}`);
  }
}

export const keyOf = ({ applicationId, objectId }: Row): string => `${applicationId}/${objectId}`;

/** The disk store's folders, as docs/files.md describes them. */
export function viewOfDisk(dir: string): StoreView {
  const root = join(dir, 'objects/');
  return {
    async list() {
      const objects = new Map<string, number>();
      for (const file of await entriesOf(root)) {
        const path = join(file.parentPath, file.name);
        if (file.isFile()) objects.set(path.slice(root.length), (await stat(path)).size);
      }
      return { objects, unfinished: (await entriesOf(join(dir, 'tmp'))).map(({ name }) => `temporary file ${name}`) };
    },
    read: async (key) => createReadStream(join(root, key)),
  };
}

async function entriesOf(dir: string): Promise<Dirent[]> {
  return readdir(dir, { recursive: true, withFileTypes: true }).catch((err: NodeJS.ErrnoException) => {
    if (err.code === 'ENOENT') return [];
    throw err;
  });
}
