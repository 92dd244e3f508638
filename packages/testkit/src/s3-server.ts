import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runServer, type ServerProcess } from '@latchkey/embedded/server-process';
import { waitUntil } from '@latchkey/embedded/wait-until';
import { findSwift } from './s3-packages.ts';

const CACHE_DIR = fileURLToPath(new URL('../../../node_modules/.cache/latchkey', import.meta.url));
const SCRIPT = fileURLToPath(new URL('./s3-server.py', import.meta.url));
const START_TIMEOUT_MS = 15_000;

/** An S3 server of others: OpenStack Swift, from the distribution's packages. */
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
    return { unavailable: `no S3 server of the distribution: ${(err as Error).message}` };
  }
}

async function start(dir: string): Promise<S3Server> {
  const program = await findSwift(CACHE_DIR);
  const accessKeyId = 'tests:latchkey';
  const secretAccessKey = randomBytes(16).toString('hex');
  const server = await runServer({
    command: program.python,
    args: [SCRIPT, dir, accessKeyId, secretAccessKey],
    cwd: dir,
    env: program.env,
    stopSteps: [['SIGKILL', 5_000]],
    removeDirWhenOrphaned: dir,
  });
  const port = await waitForPort(server);
  if (port === undefined) {
    await server.stop();
    throw new Error(`Swift did not start: ${server.recentLines().at(-1) ?? 'it said nothing'}`);
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

async function waitForPort(server: ServerProcess): Promise<string | undefined> {
  const findPort = () => server.recentLines().flatMap((line) => /^listening on (\d+)$/.exec(line)?.[1] ?? [])[0];
  const listening = waitUntil(() => findPort() !== undefined, { timeoutMs: START_TIMEOUT_MS });
  await Promise.race([server.exited, listening]);
  return findPort();
}
