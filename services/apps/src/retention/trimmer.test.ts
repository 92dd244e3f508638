import { createDatabase } from '@latchkey/kit/database/database';
import { createLogger, type Logger } from '@latchkey/kit/logger';
import { eventually } from '@latchkey/testkit/eventually';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { AppsDatabase } from '../db/schema.ts';
import { whileFailing } from '../testing/failing-table.ts';
import { changeVersion, DEFAULTS, heldSequences } from '../testing/held-events.ts';
import { deliverAll } from '../testing/rows.ts';
import { type OwnedRef, startTestApps, type TestApps } from '../testing/test-apps.ts';
import { createTrimmer } from './trimmer.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

let apps: TestApps;
beforeAll(async () => {
  apps = await startTestApps();
});
afterAll(() => apps.stop());

function linesLogger(): { lines: string[]; logger: Logger } {
  const lines: string[] = [];
  return { lines, logger: createLogger('apps', 'info', { write: (line) => void lines.push(JSON.parse(line).msg) }) };
}

/** A trimmer that trims every few milliseconds, until the test ends. */
function startTrimmer(url: string, logger: Logger) {
  const database = createDatabase<AppsDatabase>({ url, schema: 'apps', logger: createLogger('apps', 'silent') });
  const rounds: Date[] = [];
  const clock = () => {
    rounds.push(apps.clock.now());
    return apps.clock.now();
  };
  const trimmer = createTrimmer({ db: database.db, clock, retention: { ...DEFAULTS, eventCount: 2 } }, logger, 5);
  onTestFinished(async () => {
    await trimmer.stop();
    await database.close();
  });
  trimmer.start();
  return { trimmer, rounds };
}

async function withEvents(count: number): Promise<OwnedRef> {
  const ref = await apps.createOwned();
  await changeVersion(apps, ref, count);
  await deliverAll(apps.db);
  return ref;
}

const held = ({ applicationId }: OwnedRef) => heldSequences(apps, applicationId);

describe('a trimmer', () => {
  it('trims at its start, and again and again until it is stopped', async () => {
    const { lines, logger } = linesLogger();
    const first = await withEvents(3);
    const { trimmer, rounds } = startTrimmer(apps.url, logger);
    await eventually(async () => expect(await held(first)).toEqual([2, 3]));
    const second = await withEvents(4);
    await eventually(async () => expect(await held(second)).toEqual([3, 4]));
    await trimmer.stop();
    const count = rounds.length;
    expect(count).toBeGreaterThan(1);
    const third = await withEvents(4);
    expect([await held(third), rounds.length, lines]).toEqual([[1, 2, 3, 4], count, []]);
  });

  it('logs once that it fails and once that it does no longer, and tries again meanwhile', async () => {
    const { lines, logger } = linesLogger();
    const ref = await withEvents(3);
    const failure = { table: 'application_event', operation: 'delete', applicationId: ref.applicationId } as const;
    const { rounds } = await whileFailing(apps.db, failure, async () => {
      const started = startTrimmer(apps.url, logger);
      await eventually(() => started.rounds.length > 3);
      expect(lines).toEqual(['events wait to be trimmed']);
      return started;
    });
    await eventually(async () => expect(await held(ref)).toEqual([2, 3]));
    const count = rounds.length;
    await eventually(() => rounds.length > count + 3);
    expect(lines).toEqual(['events wait to be trimmed', 'events are trimmed again']);
  });

  it('bears it that the database is gone', async () => {
    const { lines, logger } = linesLogger();
    const { trimmer, rounds } = startTrimmer('postgres://nobody:x@127.0.0.1:1/none', logger);
    await eventually(() => rounds.length > 3);
    await trimmer.stop();
    expect(lines).toEqual(['events wait to be trimmed']);
  });
});

describe('the service', () => {
  /** Starts an instance, which trims at once. Events that it finds undelivered stay so, for it has no Redis. */
  async function start(env: Readonly<Record<string, string>>) {
    const { service } = apps.connect({ env });
    onTestFinished(() => service.stop());
    await service.start();
  }

  it('keeps what it is told to keep: events by number', async () => {
    const ref = await withEvents(5);
    await start({ EVENT_RETENTION_COUNT: '3' });
    await eventually(async () => expect(await held(ref)).toEqual([3, 4, 5]));
  });

  it('keeps what it is told to keep: events by hours', async () => {
    const ref = await withEvents(2);
    apps.clock.advance(HOUR_MS);
    await changeVersion(apps, ref);
    await deliverAll(apps.db);
    await start({ EVENT_RETENTION_HOURS: '1' });
    await eventually(async () => expect(await held(ref)).toEqual([3]));
  });

  it('keeps what it is told to keep: deletions by days', async () => {
    const ref = await apps.createOwned();
    await apps.client.deleteApplication(ref);
    await deliverAll(apps.db);
    apps.clock.advance(2 * DAY_MS);
    const later = await apps.createOwned();
    await apps.client.deleteApplication(later);
    await deliverAll(apps.db);
    await start({ DELETION_RETENTION_DAYS: '2' });
    await eventually(async () => expect(await held(ref)).toEqual([]));
    expect(await held(later)).toEqual([1]);
  });

  it('keeps 1,000 events for 24 hours, and deletions for 30 days, unless it is told otherwise', { timeout: 60_000 }, async () => {
    const [ref, gone] = [await withEvents(2), await apps.createOwned()];
    await apps.client.deleteApplication(gone);
    await deliverAll(apps.db);
    apps.clock.advance(DAY_MS);
    await changeVersion(apps, ref, 1_001);
    await deliverAll(apps.db);
    await start({});
    await eventually(async () => expect((await held(ref))[0]).toBe(4), { timeoutMs: 15_000 });
    expect([(await held(ref)).length, await held(gone)]).toEqual([1_000, [1]]);
    apps.clock.advance(29 * DAY_MS);
    await start({});
    await eventually(async () => expect(await held(gone)).toEqual([]));
  });
});
