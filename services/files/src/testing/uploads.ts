import { Readable } from 'node:stream';
import { type CallOptions, createClient } from '@connectrpc/connect';
import { fromConnectError } from '@latchkey/kit/errors/errors';
import { createDirectTransport } from '@latchkey/kit/rpc/client/direct-transport';
import { FileService } from '@latchkey/proto/latchkey/files/v1/file_pb';
import type { FilesContext } from '../context.ts';
import { filesRoutes } from '../files.rpc.ts';
import { sweepObjectDeletions } from '../storage/object-deletion/object-deletion.ts';
import { createReceiveUpload, sweepAbandonedUploads } from '../storage/upload/receive-upload.ts';
import type { OwnedRef } from './fake-apps.ts';
import type { TestFiles } from './test-files.ts';

/** An upload as its sender announces it. */
export interface UploadOptions {
  readonly name?: string;
  readonly byteSize?: number;
  readonly expectedChecksum?: Uint8Array;
  readonly replace?: boolean;
}

export type Uploads = ReturnType<typeof createUploads>;

let serial = 0;

/** Both paths of an upload. */
export function createUploads(ctx: FilesContext) {
  const client = createClient(FileService, createDirectTransport(filesRoutes(ctx), ctx.logger));
  const receive = createReceiveUpload(ctx);
  /** Begins an upload; returns its ticket. */
  const begin = async (ref: OwnedRef, options: UploadOptions = {}, call: CallOptions = {}) => {
    const { name, byteSize, expectedChecksum, replace } = options;
    serial += 1;
    const description = {
      ...ref,
      fileName: name ?? `upload-${serial}`,
      ...(byteSize !== undefined && { byteSize: BigInt(byteSize) }),
      ...(replace && { replace }),
      ...(expectedChecksum && { expectedChecksum: new Uint8Array(expectedChecksum) }),
    };
    const { ticket } = await client.beginUpload(description, call);
    return ticket;
  };
  /** Sends the bytes for a ticket. */
  const send = (ticket: string, body: Readable | Buffer) =>
    receive({ ticket, body: body instanceof Readable ? body : Readable.from([body]), requestId: 'request-1' });
  return {
    client,
    begin,
    send,
    /** Does both. */
    upload: async (ref: OwnedRef, body: Readable | Buffer, options?: UploadOptions) => send(await begin(ref, options), body),
  };
}

/** The reason why a call was rejected. Throws when it was not, and unexpected errors. */
export async function reasonOf(call: Promise<unknown>): Promise<string> {
  const err = await call.then(
    () => new Error('The call succeeded'),
    (reason: unknown) => reason,
  );
  const known = fromConnectError(err);
  if (!known) throw err;
  return known.reason;
}

/** Everything that an account has; `pending` counts its upload and the scheduled removals. */
export async function holdingsOf(files: TestFiles, { accountId, applicationId }: OwnedRef) {
  const count = async (text: string) => Number((await files.db.query(text, [accountId])).rows[0].n);
  const { rows } = await files.db.query('select file_count, charged_mib from application_usage where application_id = $1', [
    applicationId,
  ]);
  const objects: string[] = [];
  for await (const object of files.ctx.store.list()) if (object.key.startsWith(applicationId)) objects.push(object.key);
  return {
    files: await count('select count(*) as n from file where account_id = $1'),
    pending: await count(
      `select (select count(*) from upload_intent where account_id = $1)
        + (select count(*) from object_deletion where object_key like '${applicationId}/%') as n`,
    ),
    fileCount: Number(rows[0]?.file_count ?? 0),
    chargedMib: Number(rows[0]?.charged_mib ?? 0),
    objects: objects.length,
  };
}

export const NOTHING = { files: 0, pending: 0, fileCount: 0, chargedMib: 0, objects: 0 };

/** Usage of an account after the upload of one small file. */
export const ONE = { files: 1, pending: 0, fileCount: 1, chargedMib: 1, objects: 1 };

/** Lets the lease of the account's upload expire. */
export const expireLease = (files: TestFiles, { accountId }: OwnedRef) =>
  files.db.query(`update upload_intent set lease_until = now() - interval '1 s' where account_id = $1`, [accountId]);

/** Sweeps as if the account's lease had expired, and every removal of the application were due. */
export async function sweepAll(files: TestFiles, ref: OwnedRef) {
  const { signal } = new AbortController();
  await expireLease(files, ref);
  await sweepAbandonedUploads(files.ctx, signal);
  await files.db.query(`update object_deletion set due_at = now() where object_key like '${ref.applicationId}/%'`);
  await sweepObjectDeletions(files.ctx, signal);
}

/** Moves the deadline of the account's upload to this many milliseconds from now. */
export const setDeadline = (files: TestFiles, { accountId }: OwnedRef, ms: number) =>
  files.db.query(`update upload_intent set deadline_at = now() + $2 * interval '1 ms' where account_id = $1`, [accountId, ms]);
