import { createHash } from 'node:crypto';
import { createReadStream, type Dirent } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Client } from 'pg';
import { Violation } from './outcome.ts';

/** A file's row. */
export interface Row {
  readonly id: string;
  readonly accountId: string;
  readonly applicationId: string;
  readonly name: string;
  readonly byteSize: number;
  readonly checksum: string;
}

/** What the files service keeps, looked at from outside. */
export interface Holdings {
  readonly rows: readonly Row[];
  /** Sizes of objects by key. */
  readonly objects: ReadonlyMap<string, number>;
  /** Whatever else there is, which is to go away by itself. */
  readonly rests: readonly string[];
}

/** Objects as they lie in a store, and what was never finished there. */
export interface StoreView {
  list(): Promise<{ readonly objects: ReadonlyMap<string, number>; readonly unfinished: readonly string[] }>;
  /** SHA-256 in hex. */
  checksum(key: string): Promise<string>;
}

const ROWS = `
  select id, account_id as "accountId", application_id as "applicationId", display_name as name, byte_size::float8 as "byteSize",
    encode(checksum, 'hex') as checksum
  from files.file`;

/** What a killed process may leave for a moment, and counters that do not add up. */
const RESTS = `
  select 'intent ' || id || ' ' || state || ' of ' || application_id as rest from files.upload_intent
  union all select 'deletion of ' || object_key from files.object_deletion
  union all
  select 'counter of ' || coalesce(u.application_id, f.application_id) || ' says ' || coalesce(u.file_count, 0) || ' files of '
    || coalesce(u.charged_mib, 0) || ' MiB, not ' || coalesce(f.files, 0) || ' of ' || coalesce(f.mib, 0)
  from files.application_usage u full join (
    select application_id, count(*) as files, sum(greatest(1, byte_size / 1048576)) as mib from files.file group by application_id
  ) f using (application_id)
  where coalesce(u.file_count, 0) <> coalesce(f.files, 0) or coalesce(u.charged_mib, 0) <> coalesce(f.mib, 0)`;

/** Looks at everything; nobody should be at work. */
export async function lookAtHoldings(database: Client, store: StoreView): Promise<Holdings> {
  const { objects, unfinished } = await store.list();
  const { rows } = await database.query<Row>(ROWS);
  const { rows: rests } = await database.query<{ rest: string }>(RESTS);
  return { rows, objects, rests: [...rests.map(({ rest }) => rest), ...unfinished] };
}

/** What keeps rows and objects from being one to one, and whatever else there is. */
export function findDisagreements({ rows, objects, rests }: Holdings): string[] {
  const wrong = [...rests];
  const keys = new Set(rows.map(keyOf));
  for (const row of rows) {
    const byteSize = objects.get(keyOf(row));
    if (byteSize === undefined) wrong.push(`row without object: ${keyOf(row)} ${row.name}`);
    else if (byteSize !== row.byteSize) wrong.push(`object ${keyOf(row)} has ${byteSize} bytes, not ${row.byteSize}`);
  }
  for (const key of objects.keys()) if (!keys.has(key)) wrong.push(`object without row: ${key}`);
  return wrong;
}

/** @throws {Violation} for objects whose bytes are not those that their rows tell of */
export async function checkBytes(rows: readonly Row[], store: StoreView): Promise<void> {
  for (const row of rows) {
    const found = await store.checksum(keyOf(row));
    if (found !== row.checksum) throw new Violation(`The bytes of ${keyOf(row)} ${row.name} are not those that came`);
  }
}

export function keyOf({ applicationId, id }: Row): string {
  return `${applicationId}/${id}`;
}

/** Objects on disk; the folders that the service makes are known here, as an operator knows them. */
export function viewOfDisk(dir: string): StoreView {
  return {
    async list() {
      const files = await entriesOf(join(dir, 'objects'));
      const objects = new Map<string, number>();
      for (const file of files) {
        const path = join(file.parentPath, file.name);
        if (file.isFile()) objects.set(path.slice(join(dir, 'objects/').length), (await stat(path)).size);
      }
      const unfinished = (await entriesOf(join(dir, 'tmp'))).map(({ name }) => `temporary file ${name}`);
      return { objects, unfinished };
    },
    async checksum(key) {
      const hash = createHash('sha256');
      await pipeline(createReadStream(join(dir, 'objects', key)), hash);
      return hash.digest('hex');
    },
  };
}

async function entriesOf(dir: string): Promise<Dirent[]> {
  return readdir(dir, { recursive: true, withFileTypes: true }).catch((err: NodeJS.ErrnoException) => {
    if (err.code === 'ENOENT') return [];
    throw err;
  });
}
