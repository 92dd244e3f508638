import type pg from 'pg';

/** What a download says of a file. */
export interface DownloadableFile {
  readonly id: string;
  readonly applicationId: string;
  readonly displayName: string;
  readonly byteSize: number;
  /** SHA-256, 32 bytes. */
  readonly checksum: Buffer;
  readonly contentType: string;
  readonly createdAt: Date;
}

interface FileRow {
  readonly application_id: string;
  readonly display_name: string;
  readonly byte_size: string;
  readonly checksum: Buffer;
  readonly content_type: string;
  readonly created_at: Date;
}

const SELECT_FILE = 'select application_id, display_name, byte_size, checksum, content_type, created_at from file where id = $1';

/** The file, or undefined once it is deleted. */
export async function selectDownloadable(pool: pg.Pool, id: string): Promise<DownloadableFile | undefined> {
  const { rows } = await pool.query<FileRow>({ name: 'files-downloadable', text: SELECT_FILE, values: [id] });
  const [row] = rows;
  return (
    row && {
      id,
      applicationId: row.application_id,
      displayName: row.display_name,
      byteSize: Number(row.byte_size),
      checksum: row.checksum,
      contentType: row.content_type,
      createdAt: row.created_at,
    }
  );
}
