import { CreateBucketCommand, HeadBucketCommand, S3Client, S3ServiceException } from '@aws-sdk/client-s3';
import { readConfig, urlSetting } from '@latchkey/kit/config/settings';
import { orExit } from '@latchkey/kit/process/run-service';
import { z } from 'zod';

/**
 * Makes the bucket that the files service keeps files in, unless it is there. Takes that
 * service's settings.
 */

const settings = z.object({
  S3_ENDPOINT: urlSetting('http:', 'https:').optional(),
  S3_REGION: z.string().default('us-east-1'),
  S3_BUCKET: z.string(),
  S3_ACCESS_KEY_ID: z.string(),
  S3_SECRET_ACCESS_KEY: z.string(),
  S3_FORCE_PATH_STYLE: z.enum(['true', 'false'], 'must be true or false').default('false'),
});

const TIMEOUT_MS = 30_000;

const config = orExit(() => readConfig(settings, process.env));
const client = new S3Client({
  region: config.S3_REGION,
  credentials: { accessKeyId: config.S3_ACCESS_KEY_ID, secretAccessKey: config.S3_SECRET_ACCESS_KEY },
  forcePathStyle: config.S3_FORCE_PATH_STYLE === 'true',
  requestChecksumCalculation: 'WHEN_REQUIRED',
  responseChecksumValidation: 'WHEN_REQUIRED',
  ...(config.S3_ENDPOINT && { endpoint: config.S3_ENDPOINT }),
});
const bucket = { Bucket: config.S3_BUCKET };
const abortSignal = AbortSignal.timeout(TIMEOUT_MS);

try {
  process.stdout.write((await isThere()) ? `The bucket ${config.S3_BUCKET} is there.\n` : await create());
} catch (err) {
  process.stderr.write(
    `The bucket ${config.S3_BUCKET} could not be made at ${config.S3_ENDPOINT ?? 'Amazon S3'}: ${reasonOf(err)}.\n`,
  );
  process.exitCode = 1;
}
client.destroy();

async function isThere(): Promise<boolean> {
  try {
    await client.send(new HeadBucketCommand(bucket), { abortSignal });
    return true;
  } catch (err) {
    if (err instanceof S3ServiceException && err.$metadata.httpStatusCode === 404) return false;
    throw err;
  }
}

async function create(): Promise<string> {
  try {
    await client.send(new CreateBucketCommand(bucket), { abortSignal });
    return `Made the bucket ${config.S3_BUCKET}.\n`;
  } catch (err) {
    // Another that ran at the same time made it.
    if (err instanceof S3ServiceException && err.name === 'BucketAlreadyOwnedByYou')
      return `The bucket ${config.S3_BUCKET} is there.\n`;
    throw err;
  }
}

/**
 * No more than a word: what else a server says of a refusal holds the key's id and the signature.
 */
function reasonOf(err: unknown): string {
  if (abortSignal.aborted) return `no answer within ${TIMEOUT_MS / 1_000} s`;
  const { name, code } = err as NodeJS.ErrnoException;
  const word = code ?? name;
  return err instanceof S3ServiceException ? `it answers ${err.$metadata.httpStatusCode} ${word}` : word;
}
