import type { IncomingMessage, ServerResponse } from 'node:http';
import type { UploadFileResponse } from '@latchkey/proto/latchkey/files/v1/file_pb';

/** An image that a client uploads as an avatar. */
export interface AvatarUpload {
  readonly accountId: string;
  /** Network of the client, for limits. */
  readonly clientNetwork: string;
  readonly body: IncomingMessage;
  /** The declared size in bytes. */
  readonly byteSize: number | undefined;
  readonly requestId: string;
  /** Actor in the audit log. */
  readonly actor: string;
}

/** Transfers the bytes of files. Errors are DomainError or ConnectError. */
export interface FilesDataPath {
  /** Stores the body of a request if it ends `complete`. May not read it to its end. */
  upload(
    ticket: string,
    body: IncomingMessage,
    requestId: string,
  ): Promise<Pick<UploadFileResponse, 'id' | 'byteSize' | 'checksum'>>;
  /** Stores an image as an account's avatar, likewise. */
  uploadAvatar(avatar: AvatarUpload): Promise<{ readonly avatarId: string }>;
  /** Responds to a request for `/downloads/<token>`. Throws only before the response begins. */
  download(req: IncomingMessage, res: ServerResponse, requestId: string, clientNetwork: string): Promise<void>;
}
