import { randomUUID } from 'node:crypto';
import { type Client, createClient } from '@connectrpc/connect';
import { readAppsConfig } from '@latchkey/apps/config';
import { createAppsService } from '@latchkey/apps/service';
import { readFilesConfig } from '@latchkey/files/config';
import { createFilesService } from '@latchkey/files/service';
import { createLogger } from '@latchkey/kit/log/logger';
import { createDirectTransport } from '@latchkey/kit/rpc/client/direct-transport';
import { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { FileService } from '@latchkey/proto/latchkey/files/v1/file_pb';
import type { Client as DatabaseClient } from 'pg';
import { makeDatabase, withClient } from '../harness/database.ts';
import type { Servers } from '../harness/ours.ts';
import { type Figure, median, range } from '../harness/report.ts';

const WARM_UPS = 10;
const ROUNDS = 41;
const LARGE = { applications: 5, filesEach: 200_000 };
const SMALL = { applications: 1, filesEach: 1_000 };

interface Filled {
  readonly files: Client<typeof FileService>;
  readonly ref: { readonly accountId: string; readonly applicationId: string };
}

/**
 * F5: page 1 of the table and the metadata at 1,000,000 rows over 1,000; pages and searches of an
 * application of 200,000.
 */
export async function measureFilesTable(servers: Servers): Promise<Figure[]> {
  const small = await fill(servers, 'bench_small', SMALL);
  const large = await fill(servers, 'bench_large', LARGE);
  const first = ({ files, ref }: Filled) => Promise.all([files.listFiles(ref), files.getFilesMetadata(ref)]);
  const [ours = [], baseline = []] = await inTurns([() => first(large), () => first(small)]);
  const pages = LARGE.filesEach / 10;
  const page = (number: number) => () => large.files.listFiles({ ...large.ref, page: BigInt(number) });
  const search = (nameContains: string) => () => large.files.listFiles({ ...large.ref, nameContains });
  return [
    {
      id: 'F5',
      what: 'page 1 and metadata, 1,000,000 rows over 1,000',
      value: `${median(ours).toFixed(2)} ms`,
      baseline: `${median(baseline).toFixed(2)} ms`,
      result: (median(ours) / median(baseline)).toFixed(2),
      goal: '≤ 1.2',
    },
    await slowest('slowest of pages 1, 5,000, 10,000 and the last of 200,000 files', [1, pages / 4, pages / 2, pages].map(page)),
    await slowest('slowest of searches: rare, one in eight, every name, none', ['a1f', 'set', 'e', 'zzz'].map(search)),
  ];
}

async function slowest(what: string, calls: ReadonlyArray<() => Promise<unknown>>): Promise<Figure> {
  const medians = (await inTurns(calls)).map(median);
  return {
    id: 'F5',
    what,
    value: `${Math.max(...medians).toFixed(1)} ms`,
    result: range(medians, 1),
    goal: '≤ 30 ms',
  };
}

/** Times of each call, in milliseconds, one after the other in each round. */
async function inTurns(calls: ReadonlyArray<() => Promise<unknown>>): Promise<number[][]> {
  const times: number[][] = calls.map(() => []);
  for (let round = -WARM_UPS; round < ROUNDS; round += 1) {
    for (const [index, call] of calls.entries()) {
      const startedAt = performance.now();
      await call();
      if (round >= 0) times[index]?.push(performance.now() - startedAt);
    }
  }
  return times;
}

async function fill(servers: Servers, name: string, { applications, filesEach }: typeof LARGE): Promise<Filled> {
  const url = await makeDatabase(servers.databaseUrl, name);
  const env = {
    DATABASE_URL: url,
    REDIS_URL: servers.redisUrl,
    SECRET_KEY: 'benchmark-secret-key-of-32-characters',
    OBJECTS_DIR: servers.dataDir,
  };
  const logger = createLogger('bench', 'silent');
  const apps = createAppsService(readAppsConfig(env), { logger });
  const appsTransport = createDirectTransport(apps.routes, logger);
  const files = createFilesService(readFilesConfig(env), { appsTransport, identityTransport: appsTransport, logger });
  await apps.migrate();
  await files.migrate();
  const client = createClient(ApplicationService, appsTransport);
  const accountId = randomUUID();
  const made = Array.from({ length: applications }, () => client.createApplication({ accountId, name: 'Benchmark' }));
  const ids = (await Promise.all(made)).map(({ applicationId }) => applicationId);
  await withClient(url, (db) => insertFiles(db, accountId, ids, filesEach));
  servers.stops.defer(() => apps.stop());
  servers.stops.defer(() => files.stop());
  const ref = { accountId, applicationId: ids[0] as string };
  return { files: createClient(FileService, createDirectTransport(files.routes, logger)), ref };
}

/** Interleaved in time, as the uploads of several applications are. */
async function insertFiles(
  db: DatabaseClient,
  accountId: string,
  applicationIds: readonly string[],
  each: number,
): Promise<void> {
  await db.query('set search_path = files');
  await db.query(
    `insert into file (id, account_id, application_id, display_name, byte_size, checksum, content_type, created_at)
      select gen_random_uuid(), $1, ($2::uuid[])[1 + i % cardinality($2::uuid[])],
        (array['Setup', 'update', 'README', 'patches', 'License', 'datafile', 'configure', 'theme'])[1 + (hashint4(i) & 7)] || '-' || to_hex(i),
        1000 + i, sha256(i::text::bytea), 'application/octet-stream', '2026-01-01'::timestamptz + i * interval '1 second'
      from generate_series(0, $3::int - 1) i`,
    [accountId, applicationIds, each * applicationIds.length],
  );
  await db.query(`insert into application_usage select application_id, account_id, count(*), count(*) from file group by 1, 2`);
  await db.query('vacuum analyze');
  // The first leaves pages unmarked whose rows were too new for it.
  await db.query('vacuum analyze');
}
