import { eventually } from '@latchkey/testkit/eventually';
import { withClient } from '@latchkey/testkit/with-client';
import { checkBytes, findDisagreements, lookAtHoldings, type Row, viewOfDisk } from '../../faults/holdings.ts';
import type { Listener } from './listeners.ts';
import type { Uploader, World, Written } from './world.ts';

/** How long sweepers may take once all goes well, in milliseconds: what one has claimed that hung or went away is another's after a minute. */
const AGREED_MS_MAX = 90_000;

/** How long events may take. */
const HEARD_MS_MAX = 10_000;

/** What was accepted and is not there. Nobody may be at work. */
export async function findLosses(world: World): Promise<string[]> {
  const rows = await agreedRows(world);
  const files = typeof rows === 'string' ? [rows] : world.uploaders.flatMap((uploader) => missing(uploader, rows));
  const values = await Promise.all(world.written.map((written) => lostValue(world, written)));
  return [...files, ...values.flat(), ...(await unheard(world))];
}

/** Time from the answer to a change to the last listener that heard of it; the longest, of changes that were answered after a time. */
export function latestEventMs({ written }: World, since: number): number {
  const delays = written.flatMap(({ accepted, listeners }) =>
    [...accepted].flatMap(([version, answeredAt]) =>
      answeredAt < since ? [] : listeners.map(({ heard }) => (heard.get(version) ?? Number.POSITIVE_INFINITY) - answeredAt),
    ),
  );
  return Math.max(0, ...delays);
}

/** Rows of files, once they and what lies on the disk agree, to the byte; otherwise what does not. */
async function agreedRows({ fleet, servers, portrayed }: World): Promise<readonly Row[] | string> {
  const store = viewOfDisk(fleet.objectsDir);
  return withClient(servers.postgres.url, (client) =>
    eventually(
      async () => {
        const { objects, ...holdings } = await lookAtHoldings(client, store);
        const images = [...objects.keys()].filter((key) => key.startsWith(portrayed.accountId));
        const files = new Map([...objects].filter(([key]) => !images.includes(key)));
        const wrong = findDisagreements({ ...holdings, objects: files });
        if (images.length !== 1) wrong.push(`${images.length} images of one avatar`);
        if (wrong.length > 0) throw new Error(wrong.join('; '));
        await checkBytes(holdings.rows, store);
        return holdings.rows;
      },
      { timeoutMs: AGREED_MS_MAX, intervalMs: 100 },
    ).catch((err: Error) => err.message),
  );
}

function missing({ applicationId, accepted, inDoubt }: Uploader, rows: readonly Row[]): string[] {
  const own = new Map(rows.filter((row) => row.applicationId === applicationId).map((row) => [row.name, row.checksum]));
  const lost = [...accepted].filter(([name, checksum]) => own.get(name) !== checksum);
  const unasked = [...own.keys()].filter((name) => !accepted.has(name) && !inDoubt.has(name));
  return [
    ...lost.map(([name]) => `the accepted file ${name} is not there`),
    ...unasked.map((name) => `the refused file ${name} is there`),
  ];
}

/** What was in doubt may have come after. */
async function lostValue({ key }: World, { applicationId, accepted, inDoubt }: Written): Promise<string[]> {
  const { data } = await key.api.get('/api/v1/panel/get-application-settings', { applicationId });
  const last = [...accepted.keys()].at(-1);
  return data.version === last || inDoubt.includes(data.version) ? [] : [`the version is ${data.version}, not ${last}`];
}

/** Changes that a listener was never told of. */
async function unheard({ written }: World): Promise<string[]> {
  const look = () =>
    written.flatMap(({ accepted, listeners }) =>
      listeners.flatMap(({ heard }) => [...accepted.keys()].filter((version) => !heard.has(version))),
    );
  await eventually(() => look().length === 0, { timeoutMs: HEARD_MS_MAX }).catch(() => undefined);
  const flaws = written.flatMap(({ listeners }) => listeners.flatMap((listener: Listener) => listener.flaws));
  return [...look().map((version) => `a listener never heard of version ${version}`), ...flaws];
}
