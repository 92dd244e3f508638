import type { IncomingMessage, ServerResponse } from 'node:http';

/** What is said of a file that was stored. */
export interface StoredFile {
  readonly id: string;
  readonly byteSize: bigint;
  /** SHA-256 of the bytes. */
  readonly checksum: Uint8Array;
}

/** An image on its way to become an avatar. */
export interface AvatarUpload {
  readonly accountId: string;
  /** Where the client is: what limits per address count. */
  readonly clientNetwork: string;
  readonly body: IncomingMessage;
  /** In bytes, where the client has told it. */
  readonly byteSize: number | undefined;
  readonly requestId: string;
  /** Who sends it, as the audit log has it. */
  readonly actor: string;
}

/** How the bytes of files come and go, which do not travel as messages (architecture 4). */
export interface FilesDataPath {
  /**
   * Hands the body of a request on to be stored. It may be read to its end or not, and has ended properly only if the request is `complete`.
   *
   * @throws DomainError or ConnectError why it was not stored
   */
  upload(ticket: string, body: IncomingMessage, requestId: string): Promise<StoredFile>;
  /**
   * Hands an image on to become an account's avatar, and answers its id once it is; the body likewise.
   *
   * @throws DomainError or ConnectError why it did not
   */
  uploadAvatar(avatar: AvatarUpload): Promise<{ readonly avatarId: string }>;
  /**
   * Answers a request for `/downloads/<token>` of a client in a network; throws before it has answered only where the files service can't be reached.
   */
  download(req: IncomingMessage, res: ServerResponse, requestId: string, clientNetwork: string): Promise<void>;
}
