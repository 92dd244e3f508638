import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Vault } from '@latchkey/apps/runtime-key/runtime-key-text';
import pg from 'pg';
import { SECRET_KEY, type Servers, type Side, startOurs } from '../harness/ours.ts';
import { commandOf } from '../harness/process-tree.ts';
import type { Figure } from '../harness/report.ts';
import type { StormReport, StormStart } from '../harness/storm-clients.ts';

const PROGRAM = fileURLToPath(new URL('../harness/storm-clients.ts', import.meta.url));
const CLIENTS = 18_200;
const WAIT_MS_MAX = 180_000;
const POLL_MS = 100;
const MIB = 1024 * 1024;

/**
 * The realtime process is killed while it holds a socket of each of many applications, all of which
 * miss an event: the time until every client has received it, attempts, rejections, and memory.
 */
export async function measureStorm(servers: Servers): Promise<Figure[]> {
  const ours = await startOurs(servers, 'deployed');
  const db = new pg.Client({ connectionString: servers.databaseUrl, options: '-c search_path=apps' });
  await db.connect();
  servers.stops.defer(() => db.end());
  const socketKeys = await insertApplications(db, CLIENTS);
  const clients = new StormClients({ port: ours.livePort, socketKeys });
  servers.stops.defer(() => clients.end());
  await clients.until(({ open }) => open === CLIENTS);
  const rssBefore = realtime(ours).residentBytes;
  clients.reset();
  process.kill(realtime(ours).pid, 'SIGKILL');
  const killedAt = performance.now();
  await insertMissedEvents(db);
  const report = await clients.until(({ caughtUp }) => caughtUp === CLIENTS);
  const seconds = (performance.now() - killedAt) / 1_000;
  const rssAfter = realtime(ours).residentBytes;
  const rejections = Object.entries(report.rejections).map(([status, count]) => `${count} × ${status}`);
  return [
    { id: 'storm', what: `${CLIENTS} clients are back`, value: `${seconds.toFixed(1)} s`, goal: '≤ 30 s' },
    {
      id: 'storm',
      what: 'attempts of a client',
      value: (report.attempts / CLIENTS).toFixed(2),
      result: rejections.join(', '),
      goal: '≤ 1.5',
    },
    {
      id: 'storm',
      what: 'memory of realtime afterwards, over that before',
      value: `${(rssAfter / MIB).toFixed(0)} MiB`,
      baseline: `${(rssBefore / MIB).toFixed(0)} MiB`,
      result: (rssAfter / rssBefore).toFixed(2),
      goal: '≤ 1.5',
    },
  ];
}

function realtime({ measured }: Side) {
  const found = measured().find(({ pid }) => commandOf(pid).includes('realtime'));
  if (!found) throw new Error('No realtime process');
  return found;
}

/** Applications of one account, with keys that are known. Returns their socket keys. */
async function insertApplications(client: pg.Client, count: number): Promise<string[]> {
  const vault = new Vault(SECRET_KEY);
  const made = Array.from({ length: count }, () => {
    const id = randomUUID();
    return { id, socket: vault.create('socketKey', id), http: vault.create('httpKey', id) };
  });
  await client.query(
    `insert into application (id, account_id, name, socket_key_hash, socket_key_sealed, http_key_hash, http_key_sealed,
        runtime_keys_updated_at, created_at)
      select id, $1, 'Benchmark', socket_hash, socket_sealed, http_hash, http_sealed, now(), now()
      from unnest($2::uuid[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bytea[])
        as made (id, socket_hash, socket_sealed, http_hash, http_sealed)`,
    [
      randomUUID(),
      made.map(({ id }) => id),
      made.map(({ socket }) => socket.hash),
      made.map(({ socket }) => socket.sealed),
      made.map(({ http }) => http.hash),
      made.map(({ http }) => http.sealed),
    ],
  );
  await client.query('vacuum analyze application');
  return made.map(({ socket }) => socket.text);
}

/** An event of each application that is in no queue. */
async function insertMissedEvents(client: pg.Client): Promise<void> {
  await client.query(
    `with changed as (update application set version = '2.0', last_sequence = last_sequence + 1 where name = 'Benchmark' returning *)
      insert into application_event (id, application_id, account_id, sequence, type, data, created_at, delivered_at)
      select gen_random_uuid(), id, account_id, last_sequence, 'version_changed',
        '{"version": "2.0", "previousVersion": "1.0"}', now(), now() from changed`,
  );
}

class StormClients {
  readonly #child: ChildProcess = fork(PROGRAM);
  #report: StormReport = { open: 0, caughtUp: 0, attempts: 0, rejections: {} };

  constructor(start: StormStart) {
    this.#child.on('message', (report: StormReport) => (this.#report = report));
    this.#child.send(start);
  }

  reset(): void {
    this.#child.send('reset');
  }

  async until(isReached: (report: StormReport) => boolean): Promise<StormReport> {
    const deadline = performance.now() + WAIT_MS_MAX;
    while (!isReached(this.#report)) {
      if (performance.now() > deadline) throw new Error(`Clients are not back: ${JSON.stringify(this.#report)}`);
      await delay(POLL_MS);
    }
    return this.#report;
  }

  end(): void {
    this.#child.kill('SIGKILL');
  }
}
