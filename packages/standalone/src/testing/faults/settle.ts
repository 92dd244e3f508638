import { eventually } from '@latchkey/testkit/eventually';
import { withClient } from '@latchkey/testkit/with-client';
import type { Account } from './account.ts';
import { callAs } from './account.ts';
import { checkBytes, findDisagreements, type Holdings, keyOf, lookAtHoldings, type Row, type StoreView } from './holdings.ts';
import type { Entry } from './ledger.ts';
import { describeOutcome, isLost, Violation } from './outcome.ts';
import type { World } from './world.ts';

/** Longest time until the sweepers have done their part, in milliseconds: a claim of a sweeper that was killed holds for a minute. */
const SETTLE_MS_MAX = 90_000;

/**
 * Waits until all that is kept agrees, then compares it with what every client was told (promises R1-R3).
 *
 * @throws {Violation} naming what does not
 */
export async function settle(world: World, store: StoreView): Promise<void> {
  const { subject, accounts, counts } = world;
  const startedAt = performance.now();
  await Promise.all(accounts.map((account) => resolveApplications(account, subject.port)));
  const deleted = new Set(
    accounts.flatMap(({ ledger }) => ledger.applications.filter(({ state }) => state === 'gone').map(({ id }) => id)),
  );
  let last = '';
  const held = await withClient(await subject.databaseUrl(), (database) =>
    eventually(
      async () => {
        const holdings = await lookAtHoldings(database, store);
        const wrong = [
          ...findDisagreements(holdings),
          ...holdings.rows
            .filter((row) => deleted.has(row.applicationId))
            .map((row) => `of a deleted application: ${keyOf(row)}`),
        ];
        if (wrong.length === 0) return holdings;
        last = wrong.join('\n');
        throw new Violation(last);
      },
      { timeoutMs: SETTLE_MS_MAX, intervalMs: 100 },
    ),
  );
  world.journal.note(`** agreed after ${Math.round(performance.now() - startedAt)} ms: ${last}`);
  const settledMs = Math.round(performance.now() - startedAt);
  if (settledMs > counts.settledMsMax) Object.assign(counts, { settledMsMax: settledMs, settledLast: last });
  await checkBytes(held.rows, store);
  for (const account of accounts) checkLedger(world, account, held);
}

/** Asks which applications are there, where that is in doubt. */
async function resolveApplications(account: Account, port: number): Promise<void> {
  const { applications } = account.ledger;
  const answer = await eventually(
    async () => {
      const outcome = await callAs(account, port, { method: 'GET', path: '/api/v1/panel/get-applications' });
      if (isLost(outcome) || outcome.status !== 200)
        throw new Violation(`Applications are not told: ${describeOutcome(outcome)}`);
      return outcome;
    },
    { timeoutMs: 20_000, intervalMs: 100 },
  );
  const found = new Set(answer.data.map(({ id }: { id: string }) => id));
  for (const application of applications) {
    if (application.state === 'there' && !found.has(application.id)) throw new Violation(`Application ${application.id} is lost`);
    if (application.state === 'gone' && found.has(application.id)) throw new Violation(`Application ${application.id} is back`);
    application.state = found.has(application.id) ? 'there' : 'gone';
  }
}

/** Compares the files of an account with what it was told, and takes what was in doubt as it is found. */
function checkLedger({ counts }: World, { id: accountId, ledger, name }: Account, { rows }: Holdings): void {
  const unclaimed = new Set(rows.filter((row) => row.accountId === accountId));
  for (const entry of ledger.entries) {
    const isAlive = ledger.application(entry.applicationId)?.state === 'there';
    const row = [...unclaimed].find((candidate) => isRowOf(candidate, entry));
    if (row) unclaimed.delete(row);
    const what = `${entry.names} (${entry.id}) of ${name} in ${entry.applicationId}`;
    if (!isAlive) entry.state = 'gone';
    else if (entry.state === 'there' && !row) throw new Violation(`A file is lost: ${what}`);
    if (entry.state === 'gone' && row) throw new Violation(`A file is there that must not be: ${what}`);
    if (!row) {
      entry.state = 'gone';
      continue;
    }
    if (row.byteSize !== entry.byteSize || row.checksum !== entry.checksum) throw new Violation(`Other bytes: ${what}`);
    if (!entry.names.includes(row.name)) throw new Violation(`Another name, ${row.name}: ${what}`);
    if (entry.state === 'in doubt') counts.foundThere += 1;
    Object.assign(entry, { state: 'there', id: row.id, names: [row.name] });
  }
  const [foreign] = unclaimed;
  if (foreign) throw new Violation(`A file that nobody sent: ${foreign.name} (${foreign.id}) of ${name}`);
}

function isRowOf(row: Row, entry: Entry): boolean {
  if (entry.id !== undefined) return row.id === entry.id;
  return row.applicationId === entry.applicationId && entry.names.includes(row.name);
}
