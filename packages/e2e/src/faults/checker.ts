import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '@latchkey/testkit/eventually';
import { withClient } from '@latchkey/testkit/postgres/with-client';
import { Client } from 'pg';
import { UPLOAD } from '../client/files.ts';
import { type Account, type Entry, isUsable } from './expected-state.ts';
import { isLost, type Outcome, send, Violation } from './request.ts';
import { checkBytes, keyOf, type Row, readStoredState, readUsage, type StoredState } from './stored-state.ts';
import { ALLOWANCE, type Fault } from './target.ts';
import type { Sample, Workload } from './workload.ts';

/** Longest Retry-After, and longest time of errors after a repair (R9). */
const WAIT_MS_MAX = 10_000;
const RECOVERY_MS_MAX = 10_000;
/** The second removal of a failed upload is due after 60 s, and sweepers run every 30 s. */
const SETTLE_MS_MAX = 150_000;
const HEARD_MS_MAX = 10_000;
const USAGE_INTERVAL_MS = 30;
const RETRIES_MAX = 4;

/** Promises broken by responses and sockets during a fault (R6, R8, R9, R11). */
export function findBreaches(
  workload: Workload,
  fault: Fault,
  { brokenAt, repairedAt }: { brokenAt: number; repairedAt: number },
): string[] {
  const failed = workload.samples.filter((sample) => sample.failed && sample.endedAt >= brokenAt);
  const count = (what: string, samples: readonly Sample[]) =>
    samples.length === 0
      ? []
      : [`${what}: ${[...new Set(samples.map(({ kind, outcome }) => `${kind} ${outcome}`))].join(', ')} (${samples.length})`];
  const isAllowed: Record<Fault['costs'], (sample: Sample) => boolean> = {
    nothing: () => false,
    avatars: ({ kind }) => kind === 'avatar',
    errors: ({ outcome }) => !outcome.startsWith('lost'),
    'later requests': ({ startedAt }) => startedAt > brokenAt - 50,
    anything: () => true,
  };
  const { errorMsMax = Number.POSITIVE_INFINITY } = fault;
  const closes = workload.accounts
    .flatMap(({ listeners }) => listeners.flatMap((listener) => listener.closes))
    .filter(({ at }) => at >= brokenAt);
  return [
    ...count(
      'failed',
      failed.filter((sample) => !isAllowed[fault.costs](sample)),
    ),
    ...count(
      'late',
      failed.filter(({ startedAt, endedAt }) => endedAt - startedAt > errorMsMax),
    ),
    ...count(
      'after recovery',
      failed.filter(({ endedAt }) => endedAt > repairedAt + RECOVERY_MS_MAX),
    ),
    // A node that was out of order has no sockets left.
    ...(fault.closesSockets && closes.some(({ code }) => code !== 1001) ? [`closed with ${closes.map(({ code }) => code)}`] : []),
    ...(fault.costs === 'nothing' && !fault.closesSockets && closes.length > 0 ? [`${closes.length} sockets were closed`] : []),
  ];
}

/** Checks repeatedly that no account ever exceeds its limits (R4). */
export async function watchUsage({ target, accounts }: Workload, signal: AbortSignal): Promise<void> {
  let database: Client | undefined;
  while (!signal.aborted) {
    try {
      database ??= await connect(await target.databaseUrl());
      const rows = await readUsage(database);
      for (const account of accounts) {
        // An application in deletion counts until a moment that only the service knows.
        const own = rows.filter((row) => row.accountId === account.owner.accountId && isUsable(account, row.applicationId));
        const [files, mib] = (['files', 'mib'] as const).map((field) => own.reduce((sum, row) => sum + row[field], 0)) as [
          number,
          number,
        ];
        if (files > ALLOWANCE.files || mib > ALLOWANCE.mib)
          throw new Violation(`${account.name} has ${files} files of ${mib} MiB`);
      }
    } catch (err) {
      if (err instanceof Violation) throw err;
      // PostgreSQL is among what breaks.
      await database?.end().catch(() => undefined);
      database = undefined;
    }
    await pause(USAGE_INTERVAL_MS);
  }
  await database?.end().catch(() => undefined);
}

async function connect(connectionString: string): Promise<Client> {
  const client = new Client({ connectionString, connectionTimeoutMillis: 5_000, query_timeout: 5_000 });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

/** Retries uploads without a response: each succeeds, or the first attempt did (R3). */
export async function retryUnanswered(workload: Workload): Promise<void> {
  await Promise.all(
    workload.accounts.map(async (account) => {
      const all = account.unanswered.splice(0).filter(({ entry }) => isUsable(account, entry.applicationId));
      for (const { entry, bytes } of all.slice(0, RETRIES_MAX)) await retry(workload, account, entry, bytes);
    }),
  );
}

async function retry(workload: Workload, { name, key }: Account, entry: Entry, body: Buffer): Promise<void> {
  const query = { applicationId: entry.applicationId, fileName: entry.names[0] ?? '' };
  const startedAt = performance.now();
  for (;;) {
    const outcome = await send(workload.target.baseUrl, { method: 'POST', path: UPLOAD, query, headers: key.headers, body });
    const text = isLost(outcome) ? `lost ${outcome.lost}` : `${outcome.status} ${outcome.code}`.trim();
    workload.note(`${name} retry ${query.fileName}: ${text}`);
    if (text === '200' && !isLost(outcome)) Object.assign(entry, { state: 'there', id: outcome.data.id });
    // The first attempt succeeded, so its row must be found.
    else if (text === '409 file_name_taken' && entry.state === 'in doubt') entry.state = 'there';
    else if (mayWait(outcome) && performance.now() - startedAt < WAIT_MS_MAX) {
      await pause(isLost(outcome) ? 100 : Number(outcome.headers.get('retry-after')) * 1_000);
      continue;
    } else if (text !== '413 limit_exceeded')
      throw new Violation(`${name}: the retry of ${query.fileName} had the response ${text}`);
    return;
  }
}

const mayWait = (outcome: Outcome): boolean =>
  !isLost(outcome) && (outcome.code === 'rate_limit_reached' || outcome.status === 503);

/** Waits until rows and objects agree, then compares files and events (R1-R3, R6). */
export async function settle(workload: Workload): Promise<string[]> {
  const { target, accounts } = workload;
  for (const account of accounts) await resolveApplications(account);
  const accountIds = accounts.map(({ owner }) => owner.accountId);
  const deleted = new Set(
    accounts.flatMap(({ applications }) => applications.filter(({ state }) => state === 'gone').map(({ id }) => id)),
  );
  const stored = await withClient(await target.databaseUrl(), (database) =>
    eventually(
      async () => {
        const found = await readStoredState(database, target.store, accountIds);
        const late = found.rows.filter(({ applicationId }) => deleted.has(applicationId)).map((row) => `deleted: ${keyOf(row)}`);
        const images = accounts.filter(({ hasAvatar, owner }) => hasAvatar && found.images.get(owner.accountId) !== 1);
        const wrong = [...found.disagreements, ...late, ...images.map(({ name }) => `${name} has not one avatar`)];
        if (wrong.length > 0) throw new Violation(wrong.join('\n'));
        return found;
      },
      { timeoutMs: SETTLE_MS_MAX, intervalMs: 1_000 },
    ),
  );
  await checkBytes(stored.rows, target.store);
  for (const account of accounts) checkFiles(account, stored);
  return (await Promise.all(accounts.map(checkEvents))).flat();
}

/** Reads which applications exist, where that is in doubt. */
async function resolveApplications({ key, applications }: Account): Promise<void> {
  const { data } = await eventually(() => key.get('/api/v1/panel/get-applications'), { timeoutMs: 20_000 });
  const found = new Set((data as Array<{ id: string }>).map(({ id }) => id));
  for (const application of applications) {
    const state = found.has(application.id) ? 'there' : 'gone';
    if (application.state !== 'in doubt' && application.state !== state)
      throw new Violation(`Application ${application.id} is ${state}`);
    application.state = state;
  }
}

/** Compares an account's files with the expected state, and resolves those in doubt. */
function checkFiles(account: Account, { rows }: StoredState): void {
  const unclaimed = new Set(rows.filter(({ accountId }) => accountId === account.owner.accountId));
  for (const entry of account.entries) {
    const row = [...unclaimed].find((candidate) => isRowOf(candidate, entry));
    const what = `${entry.names} (${entry.id}) of ${account.name} in ${entry.applicationId}`;
    if (!isUsable(account, entry.applicationId)) entry.state = 'gone';
    if (entry.state === 'there' && !row) throw new Violation(`A file is lost: ${what}`);
    if (entry.state === 'gone' && row) throw new Violation(`A file exists that must not: ${what}`);
    entry.state = row ? 'there' : 'gone';
    if (!row) continue;
    unclaimed.delete(row);
    const isRight = row.byteSize === entry.byteSize && row.checksum === entry.checksum && entry.names.includes(row.name);
    if (!isRight) throw new Violation(`Another file, ${row.name} ${row.byteSize}: ${what}`);
    Object.assign(entry, { id: row.id, names: [row.name] });
  }
  for (const row of unclaimed) throw new Violation(`A file that no one sent: ${row.name} (${row.id}) of ${account.name}`);
}

function isRowOf(row: Row, entry: Entry): boolean {
  if (entry.id !== undefined) return row.id === entry.id;
  return row.applicationId === entry.applicationId && entry.names.includes(row.name);
}

/** Checks that every listener received every change, and last the version that REST shows. */
async function checkEvents({ name, key, liveId, listeners, versions }: Account): Promise<string[]> {
  const { data } = await key.get('/api/v1/panel/get-application-settings', { applicationId: liveId });
  const missing = () =>
    listeners.flatMap(({ received, lastVersion }) => [
      ...[...versions.keys()].filter((version) => !received.has(version)),
      ...(versions.size > 0 && lastVersion !== data.version ? [`${data.version} as the last one, but ${lastVersion}`] : []),
    ]);
  await eventually(() => missing().length === 0, { timeoutMs: HEARD_MS_MAX }).catch(() => undefined);
  const flaws = listeners.flatMap((listener) => listener.flaws.splice(0));
  const lost = missing();
  versions.clear();
  return [...lost.map((version) => `${name}: version ${version} was not received`), ...flaws];
}
