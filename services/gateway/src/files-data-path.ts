import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { UploadFileResponse } from '@latchkey/proto/latchkey/files/v1/file_pb';
import type { Upload } from '@latchkey/proto/latchkey/files/v1/upload_pb';

export interface RequestBody {
  readonly accountId: string;
  readonly body: Readable;
  /** The declared size in bytes. */
  readonly byteSize: number | undefined;
  readonly requestId: string;
  readonly actor: string;
  /** SHA-256 that the body must have. */
  readonly checksum: Buffer | undefined;
  readonly idempotency: Readonly<Record<string, string>> | undefined;
}

/** Transfers the bytes of files. Errors are DomainError or ConnectError. */
export interface FilesDataPath {
  /** Stores the body of a request if it ends `complete`. May not read it to its end. */
  upload(
    ticket: string,
    body: IncomingMessage,
    requestId: string,
  ): Promise<Pick<UploadFileResponse, 'id' | 'byteSize' | 'checksum'>>;
  /** Stores a chunk, of a body that breaks off what came of it. An empty one finishes an upload. */
  appendUpload(
    chunk: RequestBody & { readonly uploadId: string; readonly byteOffset: number },
  ): Promise<{ readonly upload?: Upload | undefined }>;
  uploadAvatar(avatar: RequestBody & { readonly clientNetwork: string }): Promise<{ readonly avatarId: string }>;
  /** Responds to a request for `/downloads/<token>`. Throws only before the response begins. */
  download(req: IncomingMessage, res: ServerResponse, requestId: string, clientNetwork: string): Promise<void>;
}
