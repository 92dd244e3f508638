import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createRetentionSweep } from '@latchkey/apps/retention/retention';
import { Vault } from '@latchkey/apps/runtime-key/runtime-key-text';
import { startPostgres } from '@latchkey/embedded/postgres/postgres';
import { createDatabase } from '@latchkey/kit/database/database';
import { createLogger } from '@latchkey/kit/log/logger';
import type { Client } from 'pg';
import { type Caller, prepareCaller } from '../harness/account.ts';
import { makeDatabase, withClient } from '../harness/database.ts';
import { SECRET_KEY, type Servers, type Side, startOurs } from '../harness/ours.ts';
import type { Figure } from '../harness/report.ts';
import { type BenchRequest, request } from '../harness/request.ts';

const SIZE = {
  accounts: 100_000,
  applications: 1_000_000,
  keys: 2_000_000,
  files: 5_000_000,
  entries: 10_000_000,
  events: 5_000_000,
};
/** A hundredth of it for a quick look: `SIZE_SHARE=0.01 npm run bench size`. */
const SHARE = Number(process.env.SIZE_SHARE ?? 1);
const WARM_UPS = 100;
const CALLS = 400;

interface RouteCall extends BenchRequest {
  readonly path: string;
}

interface Cost {
  readonly statements: number;
  /** Blocks of 8 KiB that PostgreSQL read, cached or not. */
  readonly buffers: number;
  readonly databaseMs: number;
  readonly cpuMs: number;
}

const ROUTES: ReadonlyArray<readonly [string, (caller: Caller) => RouteCall]> = [
  ['get-applications', ({ headers }) => ({ path: 'get-applications', method: 'GET', headers })],
  ['list-applications', ({ headers }) => ({ path: 'list-applications', method: 'GET', headers })],
  ['get-application-settings', get('get-application-settings')],
  ['get-application-license-levels', get('get-application-license-levels')],
  ['get-usage', get('get-usage')],
  ['get-files-table', get('get-files-table')],
  ['get-files-metadata', get('get-files-metadata')],
  ['get-account-limits', ({ headers }) => ({ path: 'get-account-limits', method: 'GET', headers })],
  ['audit-log', ({ sessionHeaders }) => ({ path: 'audit-log', method: 'GET', headers: sessionHeaders })],
  ['api-keys', ({ sessionHeaders }) => ({ path: 'api-keys', method: 'GET', headers: sessionHeaders })],
  ['list-api-keys', ({ sessionHeaders }) => ({ path: 'list-api-keys', method: 'GET', headers: sessionHeaders })],
  [
    'update-application-settings',
    ({ headers, applicationId }) => ({
      path: `update-application-settings?applicationId=${applicationId}`,
      method: 'PATCH',
      headers,
      json: { field: 'version', value: randomUUID() },
    }),
  ],
  ['create-application', ({ headers }) => ({ path: 'create-application', method: 'POST', headers, json: { name: 'Another' } })],
];

function get(route: string) {
  return ({ headers, applicationId }: Caller) => ({ path: `${route}?applicationId=${applicationId}`, method: 'GET', headers });
}

/**
 * Statements, buffers and CPU of each route for an account of a few rows, in a database that is
 * filled by SQL over one that is empty, and the time that the sweep of expired events takes.
 */
export async function measureSize(others: Servers): Promise<Figure[]> {
  const postgres = await startCountingPostgres(join(others.dataDir, 'size'));
  others.stops.defer(() => postgres.stop());
  const servers = { ...others, databaseUrl: postgres.url() };
  const empty = await measureRoutes(servers, 'bench_empty', async () => undefined);
  let sweep: Figure | undefined;
  const full = await measureRoutes(servers, 'bench_full', fill, async (url) => {
    sweep = await measureSweep(url);
  });
  const figures = ROUTES.flatMap(([route]) => {
    const [ours, baseline] = [full.get(route), empty.get(route)];
    if (!ours || !baseline) return [];
    const ratio = (ours.databaseMs + ours.cpuMs) / (baseline.databaseMs + baseline.cpuMs);
    return [{ id: 'size', what: route, value: show(ours), baseline: show(baseline), result: ratio.toFixed(2), goal: '≤ 1.3' }];
  });
  return sweep ? [...figures, sweep] : figures;
}

/** A server that counts statements and their buffers, with memory for a large database. */
async function startCountingPostgres(dataDir: string) {
  await mkdir(dataDir, { mode: 0o711 });
  const first = await startPostgres({ dataDir, durable: false });
  await withClient(first.url(), async (client) => {
    await client.query(`alter system set shared_preload_libraries = 'pg_stat_statements'`);
    await client.query(`alter system set shared_buffers = '1GB'`);
    await client.query(`alter system set max_wal_size = '8GB'`);
    await client.query('create extension pg_stat_statements');
  });
  await first.stop();
  return startPostgres({ dataDir, durable: false });
}

const show = ({ statements, buffers, databaseMs, cpuMs }: Cost) =>
  `${statements.toFixed(1)} statements, ${buffers.toFixed(0)} buffers, ${databaseMs.toFixed(2)} + ${cpuMs.toFixed(2)} ms`;

async function measureRoutes(
  { databaseUrl, ...servers }: Servers,
  name: string,
  prepare: (client: Client) => Promise<unknown>,
  afterwards: (url: string) => Promise<unknown> = async () => undefined,
): Promise<ReadonlyMap<string, Cost>> {
  const url = await makeDatabase(databaseUrl, name);
  const dataDir = join(servers.dataDir, name);
  await mkdir(dataDir);
  const side = await startOurs({ ...servers, dataDir, databaseUrl: url }, 'standalone');
  return withClient(url, async (client) => {
    await prepare(client);
    const caller = await prepareCaller(side.baseUrl);
    const costs = new Map<string, Cost>();
    for (const [route, make] of ROUTES)
      costs.set(route, await measureRoute(side, databaseUrl, name, () => callRoute(side, make(caller))));
    await afterwards(url);
    return costs;
  });
}

async function callRoute({ baseUrl }: Side, { path, ...options }: RouteCall) {
  await request(`${baseUrl}/api/v1/panel/${path}`, options);
}

async function measureRoute(side: Side, databaseUrl: string, name: string, call: () => Promise<void>): Promise<Cost> {
  for (let i = 0; i < WARM_UPS; i += 1) await call();
  return withClient(databaseUrl, async (client) => {
    await client.query('select pg_stat_statements_reset()');
    const cpuSeconds = await side.cpuSeconds(async () => {
      for (let i = 0; i < CALLS; i += 1) await call();
    });
    // Statements that the service runs by itself do not belong to the route.
    const { rows } = await client.query<{ statements: number; buffers: number; ms: number }>(
      `select coalesce(sum(calls), 0)::float8 as statements, coalesce(sum(shared_blks_hit + shared_blks_read), 0)::float8 as buffers,
          coalesce(sum(total_exec_time), 0)::float8 as ms
        from pg_stat_statements join pg_database on oid = dbid where datname = $1 and calls >= $2`,
      [name, CALLS],
    );
    const { statements = 0, buffers = 0, ms = 0 } = rows[0] ?? {};
    const each = (value: number) => value / CALLS;
    return { statements: each(statements), buffers: each(buffers), databaseMs: each(ms), cpuMs: each(cpuSeconds) * 1_000 };
  });
}

/** Rows of many small accounts. Their keys open nothing. */
async function fill(client: Client): Promise<void> {
  const count = (of: keyof typeof SIZE) => Math.max(1, Math.round(SIZE[of] * SHARE));
  const account = `md5('account ' || i % ${count('accounts')})::uuid`;
  const application = `md5('application ' || i % ${count('applications')})::uuid`;
  const sealed = new Vault(SECRET_KEY).create('socketKey', randomUUID()).sealed;
  const key = `decode('${sealed.toString('hex')}', 'hex')`;
  const steps = [
    `insert into identity.account (id, username, email, created_at)
      select ${account}, 'user-' || i, i || '@example.com', now() from generate_series(1, ${count('accounts')}) i`,
    `insert into apps.application (id, account_id, name, socket_key_hash, socket_key_sealed, http_key_hash, http_key_sealed,
        runtime_keys_updated_at, created_at)
      select ${application}, ${account}, 'Application ' || i, sha256(('s' || i)::bytea), ${key}, sha256(('h' || i)::bytea), ${key},
        now(), now() from generate_series(1, ${count('applications')}) i`,
    `insert into identity.api_key (id, account_id, name, public_id, key_hash, key_last4, scopes, all_applications,
        application_ids, created_at, updated_at)
      select gen_random_uuid(), ${account}, 'Key ' || i, 'key-' || i, '-', '-', '{files:read}', true, '{}', now(), now()
      from generate_series(1, ${count('keys')}) i`,
    `insert into files.file (id, account_id, application_id, display_name, byte_size, checksum, content_type, created_at)
      select gen_random_uuid(), ${account}, ${application}, 'file-' || i, 1000, sha256(i::text::bytea), 'text/plain', now()
      from generate_series(1, ${count('files')}) i`,
    `insert into files.application_usage select application_id, min(account_id::text)::uuid, count(*), count(*)
      from files.file group by application_id`,
    `insert into apps.audit_entry (id, account_id, at, action, actor, subject, subject_id, application_id, changes)
      select gen_random_uuid(), ${account}, now() - i * interval '0.5 s', 'application.setting_updated', 'key', 'application',
        ${application}, ${application}, '{}' from generate_series(1, ${count('entries')}) i`,
    // Older than the log retains.
    `insert into apps.application_event (id, application_id, account_id, sequence, type, data, created_at, delivered_at)
      select gen_random_uuid(), ${application}, ${account}, 1 + i / ${count('applications')}, 'paused', '{}',
        now() - interval '2 days', now() from generate_series(0, ${count('events')} - 1) i`,
    `insert into apps.daily_usage (application_id, day, events, downloads, uploads, clients_max)
      select id, current_date - i, 1, 1, 1, 1 from apps.application, generate_series(0, 1) i`,
    'vacuum analyze',
    // A database in use has the indexes of new rows in memory.
    'create extension pg_prewarm',
    `select pg_prewarm(indexrelid) from pg_index where indrelid = 'apps.application'::regclass`,
  ];
  for (const [index, text] of steps.entries()) {
    process.stderr.write(`filling, step ${index + 1} of ${steps.length}\n`);
    await client.query(text);
  }
}

async function measureSweep(url: string): Promise<Figure> {
  const { db, close } = createDatabase({ url, schema: 'apps', logger: createLogger('bench', 'silent') });
  const startedAt = performance.now();
  await createRetentionSweep(db, () => new Date())(new AbortController().signal);
  const seconds = (performance.now() - startedAt) / 1_000;
  await close();
  return { id: 'size', what: 'deletion of all expired events', value: `${seconds.toFixed(1)} s`, goal: 'ends' };
}
