import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from '@latchkey/testkit/eventually';
import { afterAll, beforeAll, expect, inject, it, onTestFinished } from 'vitest';
import type { Api } from '../client/api.ts';
import { createApplication, createKey, signUp } from '../client/caller.ts';
import { LiveClient, readSocketKey } from '../client/live.ts';
import { openSocket } from '../client/raw-request.ts';
import { type DedicatedInstance, startDedicatedInstance } from '../instance/dedicated-instance.ts';
import { findServiceProcesses } from '../instance/running-processes.ts';

const SETTINGS = '/api/v1/panel/get-application-settings';

let instance: DedicatedInstance;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'latchkey-connections-'));
  instance = await startDedicatedInstance({ env: { NODE_OPTIONS: `--import=${COUNTER}`, WRITES_DIR: folder } });
});
afterAll(async () => {
  await instance?.stop();
  await rm(folder, { recursive: true, force: true, maxRetries: 10 });
});

/** A new account's key and application, so that no limit of another test is in the way. */
async function createCaller(): Promise<{ api: Api; applicationId: string }> {
  const { api } = await createKey(await signUp(instance.api));
  return { api, applicationId: await createApplication(api) };
}

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
  const { api, applicationId } = await createCaller();
  const path = `${SETTINGS}?applicationId=${applicationId}`;
  const request = `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${api.headers.authorization}\r\n\r\n`;
  const sockets = await Promise.all(Array.from({ length: READS }, () => openSocket(instance.port)));
  onTestFinished(() => sockets.forEach((socket) => void socket.destroy()));

  const gateway = (await readdir(folder)).find((file) =>
    file.startsWith(instance.shape === 'standalone' ? 'launcher-' : 'gateway-'),
  );
  const pid = Number(/\d+/.exec(gateway ?? '')?.[0]);
  const { postgresUrl, redisUrl } = inject('latchkeyTestServers');
  const peers = { clients: 'clients', [new URL(postgresUrl).port]: 'PostgreSQL', [new URL(redisUrl).port]: 'Redis' };
  // The first rounds also open connections, and background work may write in any.
  const readTogether = async () => {
    // Otherwise, each request might authenticate its key again.
    await api.get(path);
    const before = await readCounts(folder, peers);
    await sendTogether(pid, sockets, request);
    expect(subtract(await readCounts(folder, peers), before)).toEqual(COSTS[instance.shape]);
  };
  await eventually(readTogether, { timeoutMs: 20_000 });
});

/** Outcome of one request of the next test. */
interface Sent {
  readonly sentAt: number;
  /** The status, or the code of the error. */
  readonly result: number | string;
  readonly reused: boolean;
}

/** Sends one request and records how it ended. */
function send(url: string, agent: Agent, headers: Record<string, string>, body?: string): Promise<Sent> {
  return new Promise((resolve) => {
    const req = request(url, {
      method: body ? 'PATCH' : 'GET',
      agent,
      headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    });
    const sentAt = performance.now();
    const end = (result: number | string) => resolve({ sentAt, result, reused: req.reusedSocket });
    const fail = (err: NodeJS.ErrnoException) => end(err.code ?? err.message);
    req.on('error', fail);
    req.on('response', (res) =>
      res
        .on('error', fail)
        .on('end', () => end(res.complete ? (res.statusCode ?? 0) : 'incomplete'))
        .resume(),
    );
    req.end(body);
  });
}

it.runIf(inject('latchkeyInstance').shape === 'deployed')('a killed service is started again', async () => {
  const { api, applicationId } = await createCaller();
  const read = async () => (await api.get(SETTINGS, { applicationId }, { mayFail: true })).status;
  const pids = new Map(findServiceProcesses(instance.pid));
  expect([...pids.keys()].sort()).toEqual(['apps', 'files', 'gateway', 'identity', 'realtime']);
  process.kill(pids.get('apps') ?? 0, 'SIGKILL');
  const restarted = () => new Map(findServiceProcesses(instance.pid)).get('apps') ?? pids.get('apps');
  await eventually(() => restarted() !== pids.get('apps'), { timeoutMs: 30_000 });
  await eventually(async () => expect(await read()).toBe(200), { timeoutMs: 30_000 });
});

it('SIGTERM under load fails no accepted request, ends with code 0, and is not held up by unused connections', async () => {
  const { api, applicationId } = await createCaller();
  const query = `applicationId=${applicationId}`;
  const idle = await Promise.all(Array.from({ length: 3 }, () => openSocket(instance.port)));
  for (const socket of idle) socket.resume();
  idle[1]?.write('GET /healthz HTTP/1.1\r\nHost:');
  idle[2]?.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  const outcomes: Sent[] = [];
  const agents = [new Agent({ keepAlive: false }), ...Array<Agent>(3).fill(new Agent({ keepAlive: true }))];
  const worker = async (i: number) => {
    const path = `${instance.baseUrl}/api/v1/panel/${i % 8 < 4 ? 'update' : 'get'}-application-settings?${query}`;
    for (let last: Sent | undefined; last?.result !== 'ECONNREFUSED'; ) {
      const body = i % 8 < 4 ? JSON.stringify({ field: 'version', value: String(outcomes.length) }) : undefined;
      last = await send(path, agents[i % 4] as Agent, { ...api.headers }, body);
      outcomes.push(last);
    }
  };
  const workers = Array.from({ length: 16 }, (_, i) => worker(i));
  await eventually(() => outcomes.length > 300, { timeoutMs: 20_000 });
  const client = new LiveClient(instance.realtimeUrl, await readSocketKey(api, applicationId));
  await client.ready();
  const startedAt = performance.now();
  process.kill(instance.pid, 'SIGTERM');
  expect(await client.ended).toBe(1001);
  await Promise.all(workers);
  // A gateway that waited for them would close them after 35 s.
  await eventually(() => idle.every(({ closed }) => closed), { timeoutMs: 20_000 });
  expect(await instance.exited).toBe(0);
  expect(findServiceProcesses(instance.pid)).toEqual([]);
  for (const agent of agents) agent.destroy();

  // Connections that the system had queued, and the process not accepted, are reset: none that was
  // opened later had a response.
  const answered = outcomes.filter(({ result, reused }) => result === 200 && !reused);
  const acceptedLast = Math.max(...answered.map(({ sentAt }) => sentAt));
  // Live connections are closed first; meanwhile the REST interface answers.
  expect(acceptedLast).toBeGreaterThan(startedAt);
  const isUnaccepted = ({ result, reused, sentAt }: Sent) => result === 'ECONNRESET' && !reused && sentAt > acceptedLast;
  const failed = outcomes.filter((outcome) => ![200, 'ECONNREFUSED'].includes(outcome.result) && !isUnaccepted(outcome));
  expect(failed.map(({ result, reused, sentAt }) => [result, reused, sentAt - startedAt])).toEqual([]);
});
