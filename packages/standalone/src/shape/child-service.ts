import { fileURLToPath } from 'node:url';
import { runServer, type ServerProcess } from '@latchkey/embedded/server-process';
import { StartError } from '@latchkey/embedded/start-error';
import { waitUntil } from '@latchkey/embedded/wait-until';
import { type LogSink, toReadable } from '../log-sink.ts';

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));
const READY_TIMEOUT_MS = 60_000;
const PROBE_TIMEOUT_MS = 2_000;

export interface ChildServiceOptions {
  /** The name of its folder. */
  readonly name: string;
  readonly env: NodeJS.ProcessEnv;
  /** Where it answers probes. */
  readonly url: string;
  readonly logs: LogSink;
  /** How long its ordered stop may take, in milliseconds. */
  readonly stopTimeoutMs: number;
}

/**
 * Starts a service as a process of its own and waits until it is ready.
 *
 * @throws {StartError} with what the service said last, when it does not get there.
 */
export async function startChildService({ name, env, url, logs, stopTimeoutMs }: ChildServiceOptions): Promise<ServerProcess> {
  const child = await runServer({
    command: process.execPath,
    args: [`${ROOT}services/${name}/src/main.ts`],
    cwd: ROOT,
    env,
    stopSteps: [
      ['SIGTERM', stopTimeoutMs],
      ['SIGKILL', 5_000],
    ],
    onLine: (line) => (line.startsWith('{') ? logs.write(line) : logs.writeText(name, line)),
  });
  let ended = false;
  void child.exited.then(() => {
    ended = true;
  });
  const ready = await waitUntil(async () => ended || (await isReady(url)), { timeoutMs: READY_TIMEOUT_MS, intervalMs: 25 });
  if (ready && !ended) return child;
  await child.stop();
  const last = child.recentLines().findLast((line) => line.startsWith('{')) ?? child.recentLines().join('\n');
  const reason = ended ? toReadable(last) : `it was not ready after ${READY_TIMEOUT_MS / 1_000} s`;
  throw new StartError(`The service ${name} did not start: ${reason}`, { detail: child.recentLines() });
}

async function isReady(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}
