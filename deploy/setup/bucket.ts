import { CreateBucketCommand, HeadBucketCommand, S3Client, S3ServiceException } from '@aws-sdk/client-s3';
import { readConfig, urlSetting } from '@latchkey/kit/config/settings';
import { orExit } from '@latchkey/kit/process/run-service';
import { z } from 'zod';

// Creates the bucket of the files service unless it exists. Reads that service's settings.

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
  const outcome =
    (await exists()) || !(await create()) ? `The bucket ${config.S3_BUCKET} exists.` : `Created the bucket ${config.S3_BUCKET}.`;
  process.stdout.write(`${outcome}\n`);
} catch (err) {
  process.stderr.write(
    `The bucket ${config.S3_BUCKET} could not be created at ${config.S3_ENDPOINT ?? 'Amazon S3'}: ${reasonOf(err)}.\n`,
  );
  process.exitCode = 1;
}
client.destroy();

async function exists(): Promise<boolean> {
  try {
    await client.send(new HeadBucketCommand(bucket), { abortSignal });
    return true;
  } catch (err) {
    if (err instanceof S3ServiceException && err.$metadata.httpStatusCode === 404) return false;
    throw err;
  }
}

/** @returns false where a concurrent run has created it */
async function create(): Promise<boolean> {
  try {
    await client.send(new CreateBucketCommand(bucket), { abortSignal });
    return true;
  } catch (err) {
    if (err instanceof S3ServiceException && err.name === 'BucketAlreadyOwnedByYou') return false;
    throw err;
  }
}

/** Only a word: the rest of a server's rejection holds the key's id and the signature. */
function reasonOf(err: unknown): string {
  if (abortSignal.aborted) return `no answer within ${TIMEOUT_MS / 1_000} s`;
  const { name, code } = err as NodeJS.ErrnoException;
  const word = code ?? name;
  return err instanceof S3ServiceException ? `it answers ${err.$metadata.httpStatusCode} ${word}` : word;
}
