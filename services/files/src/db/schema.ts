import type { ColumnType, Generated } from 'kysely';

/** A file. Its object is `<application_id>/<id>`, and there is one as long as there is the row. */
export interface FileTable {
  id: string;
  account_id: string;
  application_id: string;
  display_name: string;
  /** The name with ASCII letters in lower case, for searches. */
  folded_name: ColumnType<string, never, never>;
  byte_size: ColumnType<string, number, never>;
  checksum: Buffer;
  content_type: string;
  created_at: Date;
}

/** Download URLs of a file. A table apart, as changed rows of `file` cost its index-only scans. */
export interface FileDownloadUrlTable {
  file_id: string;
  created_count: ColumnType<string, number, number>;
  last_created_at: Date;
}

/** What the files of an application add up to, changed with them in one transaction. */
export interface ApplicationUsageTable {
  application_id: string;
  account_id: string;
  file_count: ColumnType<string, number, number>;
  charged_mib: ColumnType<string, number, number>;
}

/**
 * An upload that has begun and not ended. As long as it is not abandoned it is the account's lease:
 * there is one at a time. Its process renews `lease_until`; once that is past, the upload is
 * abandoned and whatever it stored is removed.
 */
export interface UploadIntentTable {
  /** Id that the file will have. */
  id: string;
  account_id: string;
  application_id: string;
  display_name: string;
  /** Size and SHA-256 where the sender has told them. */
  byte_size: ColumnType<string | null, number | null, never>;
  expected_checksum: Buffer | null;
  /** Most bytes that the allowance left when it began. */
  byte_size_max: ColumnType<string, number, never>;
  ticket_hash: Buffer;
  /** Who began it, for the audit log; null where nobody was named. */
  actor: Generated<string | null>;
  state: Generated<'issued' | 'receiving' | 'abandoned'>;
  deadline_at: Date;
  lease_until: Date;
  created_at: Generated<Date>;
}

/** An object that has no row any more and is to be removed. */
export interface ObjectDeletionTable {
  object_key: string;
  /** When to try, or to try again. */
  due_at: Generated<Date>;
}

/** Tombstone of a deleted application, which takes no commits, while its event may come again. */
export interface DeletedApplicationTable {
  application_id: string;
  created_at: Generated<Date>;
}

/**
 * Where an avatar stands. It waits to be made; its image is stored, and identity is to be told; it
 * is the account's, or was; or nothing came of it, because of what was sent or because nobody got
 * to it in time.
 */
export type AvatarState = 'waiting' | 'stored' | 'recorded' | 'replaced' | 'refused' | 'abandoned';

/**
 * An avatar that was uploaded. Its objects are `<account_id>/<raw_id>`, which is noted for removal
 * from before it is stored, and `<account_id>/<image_id>`, which is there as long as the state is
 * `stored` or `recorded`.
 */
export interface AvatarTable {
  id: string;
  account_id: string;
  state: Generated<AvatarState>;
  raw_id: string;
  image_id: string | null;
  byte_size: number | null;
  checksum: Buffer | null;
  /** Reason that the client is told, of one that is refused. */
  refusal: string | null;
  created_at: Generated<Date>;
  /** Who sent it and in which request, for the audit log; null where nobody was named. */
  actor: Generated<string | null>;
  request_id: Generated<string | null>;
  /** When the sweeper takes it up, unless it is recorded. */
  due_at: Date;
}

export interface FilesDatabase {
  file: FileTable;
  file_download_url: FileDownloadUrlTable;
  application_usage: ApplicationUsageTable;
  upload_intent: UploadIntentTable;
  object_deletion: ObjectDeletionTable;
  deleted_application: DeletedApplicationTable;
  avatar: AvatarTable;
}
