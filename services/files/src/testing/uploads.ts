import { Readable } from 'node:stream';
import { type CallOptions, type Client, createClient } from '@connectrpc/connect';
import { DomainError } from '@latchkey/kit/errors';
import { createDirectTransport } from '@latchkey/kit/rpc/direct-transport';
import { rpcRoute } from '@latchkey/kit/rpc/route';
import { FileService } from '@latchkey/proto/latchkey/files/v1/file_pb';
import type { FilesContext } from '../context.ts';
import { fileRpc } from '../storage/file/file.rpc.ts';
import { createUploadBody, type UploadAnswer } from '../storage/upload/upload.body.ts';
import { uploadRpc } from '../storage/upload/upload.rpc.ts';
import type { OwnedRef } from './fake-apps.ts';
import type { TestFiles } from './test-files.ts';

/** What the sender of an upload tells of it. */
export interface UploadOptions {
  readonly name?: string;
  readonly byteSize?: number;
  readonly expectedChecksum?: Uint8Array;
}

/** Both paths of an upload. */
export interface Uploads {
  readonly client: Client<typeof FileService>;
  /** Begins an upload and answers its ticket. */
  begin(ref: OwnedRef, options?: UploadOptions, call?: CallOptions): Promise<string>;
  /** Sends the bytes for a ticket. */
  send(ticket: string, body: Readable | Buffer): Promise<UploadAnswer>;
  /** Does both. */
  upload(ref: OwnedRef, body: Readable | Buffer, options?: UploadOptions): Promise<UploadAnswer>;
}

let serial = 0;

export function createUploads(ctx: FilesContext): Uploads {
  const routes = [rpcRoute(FileService, { ...uploadRpc(ctx), ...fileRpc(ctx) })];
  const client = createClient(FileService, createDirectTransport(routes, ctx.logger));
  const receive = createUploadBody(ctx);
  const begin: Uploads['begin'] = async (ref, { name, byteSize, expectedChecksum } = {}, call = {}) => {
    serial += 1;
    const description = {
      ...ref,
      fileName: name ?? `upload-${serial}`,
      ...(byteSize !== undefined && { byteSize: BigInt(byteSize) }),
      ...(expectedChecksum && { expectedChecksum: new Uint8Array(expectedChecksum) }),
    };
    const { ticket } = await client.beginUpload(description, call);
    return ticket;
  };
  const send: Uploads['send'] = (ticket, body) =>
    receive(ticket, body instanceof Readable ? body : Readable.from([body]), 'request-1');
  return {
    client,
    begin,
    send,
    upload: async (ref, body, options) => send(await begin(ref, options), body),
  };
}

/** The reason that the data path refused with. Throws when it did not, or with a defect. */
export async function reasonOf(call: Promise<unknown>): Promise<string> {
  const err = await call.then(
    () => new Error('The upload succeeded'),
    (reason: unknown) => reason,
  );
  if (err instanceof DomainError) return err.reason;
  throw err;
}

/** Everything that an account has, in the database and on disk. */
export async function holdingsOf(files: TestFiles, { accountId, applicationId }: OwnedRef) {
  const count = async (text: string) => Number((await files.db.query(text, [accountId])).rows[0].n);
  const { rows } = await files.db.query('select file_count, charged_mib from application_usage where application_id = $1', [
    applicationId,
  ]);
  const objects: string[] = [];
  for await (const object of files.ctx.store.list()) if (object.key.startsWith(applicationId)) objects.push(object.key);
  return {
    files: await count('select count(*) as n from file where account_id = $1'),
    intents: await count('select count(*) as n from upload_intent where account_id = $1'),
    fileCount: Number(rows[0]?.file_count ?? 0),
    chargedMib: Number(rows[0]?.charged_mib ?? 0),
    objects: objects.length,
  };
}

export const NOTHING = { files: 0, intents: 0, fileCount: 0, chargedMib: 0, objects: 0 };
