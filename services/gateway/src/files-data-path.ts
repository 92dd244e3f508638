import type { IncomingMessage, ServerResponse } from 'node:http';
import type { UploadFileResponse } from '@latchkey/proto/latchkey/files/v1/file_pb';

export interface AvatarUpload {
  readonly accountId: string;
  readonly clientNetwork: string;
  readonly body: IncomingMessage;
  readonly byteSize: number | undefined;
  readonly requestId: string;
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
  uploadAvatar(avatar: AvatarUpload): Promise<{ readonly avatarId: string }>;
  /** Responds to a request for `/downloads/<token>`. Throws only before the response begins. */
  download(req: IncomingMessage, res: ServerResponse, requestId: string, clientNetwork: string): Promise<void>;
}
