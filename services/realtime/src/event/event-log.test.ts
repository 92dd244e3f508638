import { eventually } from '@latchkey/testkit/eventually';
import { beforeEach, expect, it } from 'vitest';
import { type FakeApplication, FakeApps } from '../testing/fake-apps.ts';
import { range } from '../testing/test-node.ts';
import { createAppsClient, PAGE_EVENTS } from './apps-client.ts';
import { createEventLog, type EventLog } from './event-log.ts';

const PAGES = 4;
let now: number;
let apps: FakeApps;
let application: FakeApplication;
let log: EventLog;
beforeEach(() => {
  now = 1;
  apps = new FakeApps();
  application = createLogged(PAGES * PAGE_EVENTS);
  log = createEventLog(createAppsClient(apps.transport), { now: () => now });
});

function createLogged(count: number): FakeApplication {
  const created = apps.create();
  apps.logVersions(created, count);
  return created;
}

async function read(afterSequence: number, { id, lastSequence }: FakeApplication = application): Promise<number[]> {
  const frames = await log.readForClient({ applicationId: id, afterSequence, lastSequence });
  return frames.map(({ sequence }) => sequence);
}

async function readForHub(afterSequence: number, lastSequence: number): Promise<number[]> {
  const frames = await log.readForHub({ applicationId: application.id, afterSequence, lastSequence });
  return frames.map(({ sequence }) => sequence);
}

it('reads each page once for thousands of clients at different positions', async () => {
  const asked = range(0, PAGES * PAGE_EVENTS - 1);
  const answers = await Promise.all(asked.map((after) => read(after)));
  const endOfPage = (after: number) => (Math.floor(after / PAGE_EVENTS) + 1) * PAGE_EVENTS;
  expect(answers).toEqual(asked.map((after) => range(after + 1, endOfPage(after))));
  expect(apps.calls.list).toBe(PAGES);
});

it('reads nothing after the deadline of its client', async () => {
  const { id: applicationId, lastSequence } = application;
  const late = log.readForClient({ applicationId, afterSequence: 0, lastSequence, deadline: performance.now() });
  await expect(late).rejects.toMatchObject({ reason: 'dependency_unavailable' });
  expect(apps.calls.list).toBe(0);
});

it('caches a page for a second', async () => {
  await read(0);
  now += 999;
  await read(1);
  expect(apps.calls.list).toBe(1);
  now += 2;
  await read(2);
  expect(apps.calls.list).toBe(2);
});

it('reads a page again that lacks the newest known event', async () => {
  const last = application.lastSequence;
  apps.logVersion(application);
  expect(await read(last)).toEqual([last + 1]);
  expect(await read(last)).toEqual([last + 1]);
  expect(apps.calls.list).toBe(1);
  apps.logVersion(application);
  expect(await read(last)).toEqual([last + 1, last + 2]);
  expect(await readForHub(last, Number.POSITIVE_INFINITY)).toEqual([last + 1, last + 2]);
  expect(apps.calls.list).toBe(3);
});

it('never shares a read that began before the request', async () => {
  const last = application.lastSequence;
  apps.logVersion(application);
  const release = apps.hold();
  const early = read(last);
  await eventually(() => expect(apps.calls.list).toBe(1));
  apps.logVersion(application);
  const late = [read(last), read(last)];
  release();
  expect(await early).toEqual([last + 1]);
  for (const answer of late) expect(await answer).toEqual([last + 1, last + 2]);
  expect(apps.calls.list).toBe(2);
});

it('limits concurrent reads per application, without delaying others', async () => {
  const other = createLogged(1);
  const release = apps.hold();
  const many = range(0, PAGES - 1).map((page) => read(page * PAGE_EVENTS));
  await eventually(() => expect(apps.calls.list).toBe(2));
  apps.waitFor(undefined);
  expect(await read(0, other)).toEqual([1]);
  expect(apps.calls.list).toBe(3);
  release();
  for (const answer of await Promise.all(many)) expect(answer).toHaveLength(PAGE_EVENTS);
});

it('reads for a hub without waiting for clients', async () => {
  const others = Array.from({ length: 200 }, () => createLogged(1));
  const release = apps.hold();
  const reads = [...others.map((other) => read(0, other)), ...range(0, PAGES - 1).map((page) => read(page * PAGE_EVENTS))];
  await eventually(() => expect(apps.calls.list).toBe(128));
  apps.waitFor(undefined);
  const last = application.lastSequence;
  expect(await readForHub(last - 1, last)).toEqual([last]);
  expect(apps.calls.list).toBe(129);
  release();
  await Promise.all(reads);
});
