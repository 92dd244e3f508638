import { stat } from 'node:fs/promises';
import type { FilesConfig } from '../../config.ts';
import type { StorageContext } from '../../context.ts';
import { hasStored } from '../file/file.store.ts';
import { diskLayout } from './disk-layout.ts';
import { ignoreMissing } from './make-folder.ts';

/** Failures that don't mean a wrong folder: a full disk still serves and deletes. */
const PASSING_FAILURES = ['ENOSPC', 'EDQUOT', 'EIO'];

/**
 * Checks the store before the service starts. Throws where the settings name a wrong folder or
 * bucket, and where the database can't be queried. A store that is away is only logged.
 */
export async function checkStore({ db, store, logger }: StorageContext, config: FilesConfig): Promise<void> {
  if (config.OBJECT_STORE === 'disk') await rejectLostStore(db, config.OBJECTS_DIR ?? '');
  await store.check().catch((err: NodeJS.ErrnoException & { status?: number }) => {
    const { code = '', status } = err;
    if (config.OBJECT_STORE === 'disk' && !PASSING_FAILURES.includes(code))
      throw new Error(`OBJECTS_DIR ${config.OBJECTS_DIR} can't be used (${code})`);
    const problem = config.OBJECT_STORE === 's3' ? explainBucketError(status, config) : undefined;
    if (problem !== undefined) throw new Error(problem);
    logger.warn({ err }, 'the object store does not answer');
  });
}

/**
 * A missing folder, while the database has files, is mistyped or an unmounted disk. An operator who
 * lost it for good creates it (docs/backup.md).
 */
async function rejectLostStore(db: StorageContext['db'], dir: string): Promise<void> {
  const { objectsDir } = diskLayout(dir);
  const isThere = await stat(objectsDir)
    .catch(ignoreMissing)
    .catch(() => true);
  if (isThere || !(await hasStored(db))) return;
  throw new Error(
    `The database has files, and OBJECTS_DIR ${dir} has none: set it to the folder where they are, or make ${objectsDir} if they are lost`,
  );
}

/** Reason why an S3 server rejects the bucket of the settings; undefined for temporary failures. */
function explainBucketError(status: number | undefined, config: FilesConfig): string | undefined {
  const { S3_BUCKET, S3_ENDPOINT, S3_REGION } = config;
  const at = S3_ENDPOINT === undefined ? `Amazon S3 (region ${S3_REGION})` : new URL(S3_ENDPOINT).origin;
  switch (status) {
    case 404:
      return `S3 bucket \`${S3_BUCKET}\` does not exist at ${at}. Create it, or correct S3_BUCKET or S3_ENDPOINT.`;
    case 403:
      return `${at} denies access to S3 bucket \`${S3_BUCKET}\`. Correct S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY, or grant the rights in docs/s3.md.`;
    case 301:
    case 400:
      return `${at} rejects requests for S3 bucket \`${S3_BUCKET}\`. Correct S3_REGION (now ${S3_REGION}), S3_BUCKET or S3_FORCE_PATH_STYLE.`;
    default:
      return undefined;
  }
}
