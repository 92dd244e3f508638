import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from '@latchkey/embedded/process/free-port';
import { runServer } from '@latchkey/embedded/process/server-process';
import { waitUntil } from '@latchkey/embedded/process/wait-until';
import { findGoProgram } from '../process/go-program.ts';

/** The version of `docker-compose.yml`. */
const VERSITYGW = { name: 'github.com/versity/versitygw', version: 'v1.8.0' };
const START_TIMEOUT_MS = 15_000;

export type S3Server = Exclude<Awaited<ReturnType<typeof startS3Server>>, { readonly unavailable: string }>;

/**
 * Starts an empty S3 server of others, versitygw on a folder, on 127.0.0.1, which ends with this
 * process.
 *
 * @returns why this machine has no S3 server, for the names of skipped tests, if it has none
 */
export async function startS3Server() {
  const command = await findGoProgram(VERSITYGW, 'cmd/versitygw');
  if (typeof command !== 'string') return command;
  const dir = await mkdtemp(join(tmpdir(), 'latchkey-s3-'));
  const objects = join(dir, 'objects');
  const attributes = join(dir, 'attributes');
  await Promise.all([mkdir(objects), mkdir(attributes)]);
  const accessKeyId = 'tests';
  const secretAccessKey = randomBytes(16).toString('hex');
  const address = `127.0.0.1:${await findFreePort()}`;
  const server = await runServer({
    command,
    // Attributes in files: not every file system of a temporary folder stores extended ones.
    args: ['--port', address, 'posix', '--sidecar', attributes, objects],
    env: { PATH: process.env.PATH, HOME: dir, ROOT_ACCESS_KEY: accessKeyId, ROOT_SECRET_KEY: secretAccessKey },
    cwd: dir,
    stopSteps: [['SIGKILL', 5_000]],
    removeDirWhenOrphaned: dir,
  });
  const stop = async () => {
    await server.stop();
    await rm(dir, { recursive: true, force: true });
  };
  const responds = () => fetch(`http://${address}`).then(Boolean, () => false);
  const started = waitUntil(responds, { timeoutMs: START_TIMEOUT_MS });
  if (!(await Promise.race([server.exited.then(() => false), started]))) {
    await stop();
    throw new Error(`The S3 server did not start: ${server.recentLines().at(-1) ?? 'it printed nothing'}`);
  }
  return { endpoint: `http://${address}`, region: 'us-east-1', accessKeyId, secretAccessKey, stop };
}
