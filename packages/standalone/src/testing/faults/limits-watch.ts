import { setTimeout as pause } from 'node:timers/promises';
import { Client } from 'pg';
import { Violation } from './outcome.ts';
import type { World } from './world.ts';

/** What an account may have, as the subject is set. */
export interface Allowance {
  readonly mib: number;
  readonly files: number;
}

const INTERVAL_MS = 30;
const QUERY_TIMEOUT_MS = 5_000;

/** One statement, so that all of it is of one moment. The counters change with the rows in one transaction, so that they agree at every one. */
const USED = `
  select coalesce(f.application_id, u.application_id) as "applicationId", coalesce(f.account_id, u.account_id) as "accountId",
    coalesce(f.files, 0)::float8 as files, coalesce(f.mib, 0)::float8 as mib,
    coalesce(u.file_count, 0)::float8 as "countedFiles", coalesce(u.charged_mib, 0)::float8 as "countedMib"
  from (
    select application_id, account_id, count(*) as files, sum(greatest(1, byte_size / 1048576)) as mib
    from files.file group by application_id, account_id
  ) f full join files.application_usage u using (application_id)`;

interface Used {
  readonly applicationId: string;
  readonly accountId: string;
  readonly files: number;
  readonly mib: number;
  readonly countedFiles: number;
  readonly countedMib: number;
}

/**
 * Looks again and again, until told to stop, that no account has more than it may, not even for a moment (promises R4).
 *
 * @throws {Violation} when one has, or a counter is wrong
 */
export async function watchLimits(world: World, allowance: Allowance, signal: AbortSignal): Promise<void> {
  let database: Client | undefined;
  while (!signal.aborted) {
    try {
      database ??= await open(await world.subject.databaseUrl());
      const { rows } = await database.query<Used>(USED);
      check(world, allowance, rows);
      world.counts.samples += 1;
    } catch (err) {
      if (err instanceof Violation) throw err;
      // The database is one of the victims.
      await database?.end().catch(() => undefined);
      database = undefined;
    }
    await pause(INTERVAL_MS);
  }
  await database?.end().catch(() => undefined);
}

async function open(connectionString: string): Promise<Client> {
  const client = new Client({ connectionString, connectionTimeoutMillis: QUERY_TIMEOUT_MS, query_timeout: QUERY_TIMEOUT_MS });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

function check({ accounts }: World, { files, mib }: Allowance, rows: readonly Used[]): void {
  for (const used of rows) {
    if (used.files !== used.countedFiles || used.mib !== used.countedMib) {
      throw new Violation(`A counter is wrong at a moment: ${JSON.stringify(used)}`);
    }
  }
  for (const { id, name, ledger } of accounts) {
    // Files of an application that is being deleted do not count, from a moment on that only the service knows.
    const counted = rows.filter((used) => used.accountId === id && ledger.application(used.applicationId)?.state === 'there');
    const sum = (field: 'files' | 'mib') => counted.reduce((total, used) => total + used[field], 0);
    if (sum('files') > files || sum('mib') > mib) {
      throw new Violation(`${name} has ${sum('files')} files of ${sum('mib')} MiB and may have ${files} of ${mib} MiB`);
    }
  }
}
