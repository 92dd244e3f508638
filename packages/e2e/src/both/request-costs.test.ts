import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from '@latchkey/testkit/eventually';
import { createEmptyTestDatabase } from '@latchkey/testkit/postgres/database';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { expect, it, onTestFinished } from 'vitest';
import { createApplication, createKey, signUp } from '../client/caller.ts';
import { openSocket } from '../client/raw-request.ts';
import { startDedicatedInstance } from '../instance/dedicated-instance.ts';

const READS = 64;
const NOTHING = { writes: 0, messages: 0 };
const COUNTER = fileURLToPath(new URL('../instance/count-writes.mjs', import.meta.url));

/** By process and peer, like `apps > PostgreSQL`. */
type Counts = Readonly<Record<string, { readonly writes: number; readonly messages: number }>>;

/** Bytes written by the processes since their start. Other ports than `peers` are of services. */
async function readCounts(folder: string, peers: Readonly<Record<string, string>>): Promise<Counts> {
  const sums: Record<string, Counts[string]> = {};
  for (const file of (await readdir(folder)).filter((name) => name.endsWith('.json'))) {
    const counts = JSON.parse(await readFile(join(folder, file), 'utf8')) as Counts;
    for (const [port, { writes, messages }] of Object.entries(counts)) {
      const key = `${file.split('-')[0]} > ${peers[port] ?? 'services'}`;
      const sum = sums[key] ?? NOTHING;
      sums[key] = { writes: sum.writes + writes, messages: sum.messages + messages };
    }
  }
  return sums;
}

function subtract(after: Counts, before: Counts): Counts {
  const busy = Object.entries(after).filter(([key]) => !/^(files|realtime) /.test(key));
  const pairs = busy.map(([key, { writes, messages }]) => {
    const earlier = before[key] ?? NOTHING;
    return [key, { writes: writes - earlier.writes, messages: messages - earlier.messages }] as const;
  });
  return Object.fromEntries(pairs.filter(([, { writes }]) => writes > 0));
}

/** Pauses a process, writes a request to each socket, and resumes it: it reads all in one turn. */
async function sendTogether(pid: number, sockets: readonly Socket[], request: string): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  const answers = sockets.map((socket) => new Promise<Buffer>((resolve) => socket.once('data', resolve)));
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.write(request, resolve))));
  process.kill(pid, 'SIGCONT');
  for (const answer of await Promise.all(answers)) expect(answer.toString()).toMatch(/^HTTP\/1.1 200 /);
}

const EACH = { writes: READS, messages: 0 };
const TOGETHER = { writes: 1, messages: 1 };
const COSTS = {
  standalone: {
    'launcher > clients': EACH,
    'launcher > Redis': TOGETHER,
    'launcher > PostgreSQL': TOGETHER,
  },
  deployed: {
    'gateway > clients': EACH,
    'gateway > Redis': TOGETHER,
    'gateway > services': TOGETHER,
    'apps > clients': { writes: 1, messages: 0 },
    'apps > PostgreSQL': TOGETHER,
  },
};

it(`${READS} concurrent reads cost each process these writes, statements, commands and calls`, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'latchkey-writes-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  const [database, redis] = [await createEmptyTestDatabase(), await testRedis()];
  const env = { NODE_OPTIONS: `--import=${COUNTER}`, WRITES_DIR: folder };
  const instance = await startDedicatedInstance({ env, databaseUrl: database.url, redisUrl: redis.url });
  onTestFinished(() => instance.stop().then(database.drop));
  const { api } = await createKey(await signUp(instance.api));
  const path = `/api/v1/panel/get-application-settings?applicationId=${await createApplication(api)}`;
  const request = `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${api.headers.authorization}\r\n\r\n`;
  const sockets = await Promise.all(Array.from({ length: READS }, () => openSocket(instance.port)));
  onTestFinished(() => sockets.forEach((socket) => void socket.destroy()));

  const gateway = (await readdir(folder)).find((file) => file.startsWith(instance.shape === 'standalone' ? '' : 'gateway-'));
  const pid = Number(/\d+/.exec(gateway ?? '')?.[0]);
  const peers = { clients: 'clients', [new URL(database.url).port]: 'PostgreSQL', [new URL(redis.url).port]: 'Redis' };
  // The first rounds also open connections, and background work may write in any.
  const runFault = async () => {
    // Otherwise, each request might authenticate its key again.
    await api.get(path);
    const before = await readCounts(folder, peers);
    await sendTogether(pid, sockets, request);
    expect(subtract(await readCounts(folder, peers), before)).toEqual(COSTS[instance.shape]);
  };
  await eventually(runFault, { timeoutMs: 20_000 });
});
