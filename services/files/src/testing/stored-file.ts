import { createHash } from 'node:crypto';
import { newId } from '@latchkey/kit/validation/id';
import { objectKey } from '../storage/object-store/object-store.ts';
import { chargeMib } from '../storage/upload/usage.ts';
import type { OwnedRef } from './fake-apps.ts';
import type { TestFiles } from './test-files.ts';

export interface StoredFileOptions {
  readonly name?: string;
  readonly bytes?: Buffer;
  readonly contentType?: string;
  readonly createdAt?: Date;
}

let serial = 0;

/** Stores a file as a finished upload leaves it, row, usage and object, and answers its id. */
export async function storeFile(files: TestFiles, ref: OwnedRef, options: StoredFileOptions = {}): Promise<string> {
  serial += 1;
  const { name = `file-${serial}`, bytes = Buffer.from('content'), contentType = 'text/plain' } = options;
  const id = newId();
  await files.ctx.store.put(objectKey(ref.applicationId, id), toStream(bytes), new AbortController().signal);
  await files.db.query(
    `with inserted as (
      insert into file (id, account_id, application_id, display_name, byte_size, checksum, content_type, created_at)
      values ($1, $2, $3, $4, $5, $6, $7, $8))
    insert into application_usage (application_id, account_id, file_count, charged_mib) values ($3, $2, 1, $9)
      on conflict (application_id) do update set file_count = application_usage.file_count + 1,
        charged_mib = application_usage.charged_mib + excluded.charged_mib`,
    [
      id,
      ref.accountId,
      ref.applicationId,
      name,
      bytes.byteLength,
      createHash('sha256').update(bytes).digest(),
      contentType,
      options.createdAt ?? files.clock.now(),
      chargeMib(bytes.byteLength),
    ],
  );
  return id;
}

async function* toStream(bytes: Buffer): AsyncGenerator<Uint8Array> {
  yield bytes;
}
