import type { ColumnType, Generated } from 'kysely';

/**
 * A file. Its object is `<application_id>/<object_id>`, and there is one as long as there is the
 * row.
 */
export interface FileTable {
  id: string;
  /**
   * Of the upload that replaced the content; null while it is the first one, whose id is that of
   * the file.
   */
  object_id: Generated<string | null>;
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

/** Digests of a file of a release, which its upload did not make. Minisign signs BLAKE2b-512. */
export interface FileDigestTable {
  file_id: string;
  sha512: Buffer;
  blake2b512: Buffer;
}

export interface ApplicationUsageTable {
  application_id: string;
  account_id: string;
  file_count: ColumnType<string, number, number>;
  charged_mib: ColumnType<string, number, number>;
}

/**
 * An upload between its announcement and its end. It is the account's lease, of which there is one.
 * Its process renews `lease_until`; once that has passed, the upload is abandoned: the removal of
 * its object replaces the row.
 */
export interface UploadIntentTable {
  id: string;
  account_id: string;
  application_id: string;
  display_name: string;
  byte_size: ColumnType<string | null, number | null, never>;
  expected_checksum: Buffer | null;
  /** Most bytes that the allowance left when it began. */
  byte_size_max: ColumnType<string, number, never>;
  /** True if it may replace the file that has its name by then. */
  is_replacement: Generated<boolean>;
  ticket_hash: Buffer;
  /** For the audit log; null without an actor. */
  actor: Generated<string | null>;
  /** The call of an upload with an idempotency key; its commit keeps the result. */
  idempotency_id: Buffer | null;
  idempotency_fingerprint: Buffer | null;
  state: Generated<'issued' | 'receiving'>;
  process_lock: string | null;
  deadline_at: Date;
  lease_until: Date;
  created_at: Generated<Date>;
}

/**
 * A resumable upload. While it is `open` and not expired, it reserves its name and its charge. The
 * process that receives a chunk has claimed it, and renews `lease_until`. Its objects are
 * `<application_id>/<id>`, and beside it those of `claim_id` and of `store_state.tail`.
 */
export interface ResumableUploadTable {
  id: string;
  account_id: string;
  application_id: string;
  display_name: string;
  byte_size: ColumnType<string, number, never>;
  charged_mib: ColumnType<string, number, never>;
  expected_checksum: Buffer | null;
  metadata: string;
  /** `stored` has its file; `ended` failed, expired or was ended. Both are remembered for a day. */
  state: Generated<'open' | 'stored' | 'ended'>;
  /** Durable bytes, and where the store has them. */
  byte_offset: Generated<string>;
  store_state: Generated<object>;
  claim_id: string | null;
  lease_until: Date | null;
  /** Lock of the process that claimed it, and the call with an idempotency key. */
  process_lock: string | null;
  claim_call: Buffer | null;
  checksum: Buffer | null;
  /** The file that it replaces; null where the file has the id of the upload. */
  file_id: string | null;
  created_at: Generated<Date>;
  expires_at: Date;
}

/** An object to remove, whose row is deleted. */
export interface ObjectDeletionTable {
  object_key: string;
  due_at: Generated<Date>;
}

/** Tombstone of a deleted application, which takes no commits, while its event may come again. */
export interface DeletedApplicationTable {
  application_id: string;
  created_at: Generated<Date>;
  /** Time when its files and its usage were gone; null before. */
  completed_at: Date | null;
}

/**
 * `waiting` for its image; `stored`, before identity knows of it; `recorded` as the account's;
 * `replaced` by another; `refused` because of what was sent; `abandoned` as no worker made it in
 * time. A row `removing` is the removal of the avatars before it, which identity may not
 * know of; it ends as `replaced`.
 */
export type AvatarState = 'waiting' | 'stored' | 'recorded' | 'removing' | 'replaced' | 'refused' | 'abandoned';

/**
 * An uploaded avatar. Its objects are `<account_id>/<raw_id>`, whose deletion is scheduled before
 * it is stored, and `<account_id>/<image_id>`, which exists while it is `stored` or `recorded`.
 */
export interface AvatarTable {
  id: string;
  account_id: string;
  state: Generated<AvatarState>;
  raw_id: string;
  image_id: string | null;
  byte_size: number | null;
  checksum: Buffer | null;
  refusal: string | null;
  created_at: Generated<Date>;
  /** For the audit log; null without an actor. */
  actor: Generated<string | null>;
  request_id: Generated<string | null>;
  /**
   * Call with an idempotency key, and its sealed result, which is kept once the image is stored.
   */
  idempotency_id: Generated<Buffer | null>;
  idempotency_fingerprint: Generated<Buffer | null>;
  idempotency_result: Generated<Buffer | null>;
  process_lock: Generated<string | null>;
  due_at: Date;
}

export interface FilesDatabase {
  file: FileTable;
  file_download_url: FileDownloadUrlTable;
  file_digest: FileDigestTable;
  application_usage: ApplicationUsageTable;
  upload_intent: UploadIntentTable;
  resumable_upload: ResumableUploadTable;
  object_deletion: ObjectDeletionTable;
  deleted_application: DeletedApplicationTable;
  avatar: AvatarTable;
}
