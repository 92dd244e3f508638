import type { FilesConfig } from '../../config.ts';

type BucketSettings = Pick<FilesConfig, 'OBJECT_STORE' | 'S3_BUCKET' | 'S3_ENDPOINT' | 'S3_REGION'>;

/**
 * Says in plain words why an S3 server refuses the bucket of the settings, and what to do. Undefined for any other failure, which
 * may pass: the server is away, or has an error of its own.
 */
export function explainBucketRefusal(err: unknown, config: BucketSettings): string | undefined {
  const { S3_BUCKET, S3_ENDPOINT, S3_REGION } = config;
  if (config.OBJECT_STORE !== 's3') return undefined;
  const at = S3_ENDPOINT === undefined ? `Amazon S3 (region ${S3_REGION})` : new URL(S3_ENDPOINT).origin;
  switch ((err as { status?: number }).status) {
    case 404:
      return `S3 bucket \`${S3_BUCKET}\` does not exist at ${at}. Create it, or correct S3_BUCKET or S3_ENDPOINT.`;
    case 403:
      return `${at} denies access to S3 bucket \`${S3_BUCKET}\`. Correct S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY, or grant the rights in docs/s3.md.`;
    case 301:
    case 400:
      return `${at} refuses requests for S3 bucket \`${S3_BUCKET}\`. Correct S3_REGION (now ${S3_REGION}), S3_BUCKET or S3_FORCE_PATH_STYLE.`;
    default:
      return undefined;
  }
}
