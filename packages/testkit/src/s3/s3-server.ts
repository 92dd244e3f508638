import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '@latchkey/embedded/process/free-port';
import { runServer, type ServerProcess } from '@latchkey/embedded/process/server-process';
import { waitUntil } from '@latchkey/embedded/process/wait-until';
import { findSwift } from './s3-packages.ts';

const CACHE_DIR = fileURLToPath(new URL('../../../../node_modules/.cache/latchkey', import.meta.url));
const SCRIPT = fileURLToPath(new URL('./s3-server.py', import.meta.url));
const START_TIMEOUT_MS = 15_000;

/** An S3 server of others: TEST_S3_COMMAND, or OpenStack Swift from the distribution's packages. */
export interface S3Server {
  readonly endpoint: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  stop(): Promise<void>;
}

/**
 * Starts an empty server on 127.0.0.1, which ends with this process. The first start on a machine
 * downloads it.
 *
 * @returns why this machine has no S3 server, for the names of skipped tests, if it has none
 */
export async function startS3Server(): Promise<S3Server | { readonly unavailable: string }> {
  const dir = await mkdtemp(join(tmpdir(), 'latchkey-s3-'));
  try {
    return await start(dir);
  } catch (err) {
    await rm(dir, { recursive: true, force: true });
    if (process.env.TEST_S3_COMMAND) throw err;
    return { unavailable: `no S3 server of the distribution: ${(err as Error).message}` };
  }
}

async function start(dir: string): Promise<S3Server> {
  const { TEST_S3_COMMAND } = process.env;
  const accessKeyId = 'tests:latchkey';
  const secretAccessKey = randomBytes(16).toString('hex');
  const program = TEST_S3_COMMAND
    ? await describeCommand(TEST_S3_COMMAND, dir, accessKeyId, secretAccessKey)
    : await describeSwift(dir, accessKeyId, secretAccessKey);
  const { command, args, env } = program;
  const stopSteps = [['SIGKILL', 5_000]] as const;
  const server = await runServer({ command, args, env, cwd: dir, stopSteps, removeDirWhenOrphaned: dir });
  const port = await program.waitForPort(server);
  if (port === undefined) {
    await server.stop();
    throw new Error(`The S3 server did not start: ${server.recentLines().at(-1) ?? 'it said nothing'}`);
  }
  return {
    endpoint: `http://127.0.0.1:${port}`,
    region: 'us-east-1',
    accessKeyId,
    secretAccessKey,
    stop: async () => {
      await server.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function describeSwift(dir: string, accessKeyId: string, secretAccessKey: string) {
  const { python, env } = await findSwift(CACHE_DIR);
  return { command: python, args: [SCRIPT, dir, accessKeyId, secretAccessKey], env, waitForPort };
}

/** Another server: a command in which `{address}` and `{dir}` are replaced. */
async function describeCommand(text: string, dir: string, accessKeyId: string, secretAccessKey: string) {
  const port = String(await findFreePort());
  const words = text.split(' ').map((word) => word.replace('{address}', `127.0.0.1:${port}`).replace('{dir}', dir));
  const [command = '', ...args] = words;
  const versitygw = { ROOT_ACCESS_KEY: accessKeyId, ROOT_SECRET_KEY: secretAccessKey };
  const minio = { MINIO_ROOT_USER: accessKeyId, MINIO_ROOT_PASSWORD: secretAccessKey };
  const responds = () => fetch(`http://127.0.0.1:${port}`).then(Boolean, () => false);
  return {
    command,
    args,
    env: { PATH: process.env.PATH, HOME: dir, ...versitygw, ...minio },
    waitForPort: async (server: ServerProcess) => {
      const started = waitUntil(responds, { timeoutMs: START_TIMEOUT_MS });
      return (await Promise.race([server.exited.then(() => undefined), started])) ? port : undefined;
    },
  };
}

async function waitForPort(server: ServerProcess): Promise<string | undefined> {
  const findPort = () => server.recentLines().flatMap((line) => /^listening on (\d+)$/.exec(line)?.[1] ?? [])[0];
  const listening = waitUntil(() => findPort() !== undefined, { timeoutMs: START_TIMEOUT_MS });
  await Promise.race([server.exited, listening]);
  return findPort();
}
