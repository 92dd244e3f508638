import { randomUUID } from 'node:crypto';
import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { statementsOf } from '@latchkey/testkit/postgres/statements';
import { refusalOf } from '@latchkey/testkit/refusal';
import { beforeEach, describe, expect, it } from 'vitest';
import { eventsOf, insertVersionChanges, rowOf } from '../testing/rows.ts';
import { type OwnedRef, range, useTestApps } from '../testing/test-apps.ts';
import { changeEpoch } from './event-log.store.ts';

const apps = useTestApps();

const rotate = (ref: OwnedRef, type: number) => apps.client.rotateRuntimeKey({ ...ref, type });
const sequencesOf = async (request: { applicationId: string; afterSequence?: bigint; pageSize?: number }) =>
  (await apps.client.listApplicationEvents(request)).events.map(({ sequence }) => Number(sequence));
const PAGE_INVALID = { reason: 'page_token_invalid', kind: 'malformed', code: 'VALIDATION_ERROR' };

describe('the event log', () => {
  it('has every change in order, with a sequence if live clients are notified, and outlives the application', async () => {
    const ref = await apps.createOwned();
    await apps.set(ref, 'status', 'paused');
    await rotate(ref, 1);
    await apps.set(ref, 'status', 'online');
    await apps.set(ref, 'version', ' 2.0 ');
    await apps.client.deleteApplication(ref);
    const rows = await eventsOf(apps.db, ref);
    expect(rows.map(({ type, sequence, data }) => [type, sequence, data])).toEqual([
      ['paused', '1', { status: 'paused' }],
      ['runtime_key_rotated', null, { type: 'socketKey' }],
      ['resumed', '2', { status: 'online' }],
      ['version_changed', '3', { version: '2.0', previous_version: '1.0' }],
      ['deleted', '4', {}],
    ]);
    expect(new Set(rows.map(({ account_id }) => account_id))).toEqual(new Set([ref.accountId]));
    await apps.db.query(`update application_event set data = data || '{"added_later": 1}' where application_id = $1`, [
      ref.applicationId,
    ]);
    const { events } = await apps.client.listApplicationEvents({ applicationId: ref.applicationId.toUpperCase() });
    const sequenced = rows.filter(({ sequence }) => sequence !== null);
    expect(events.map(({ id, createdAt }) => [id, createdAt && timestampDate(createdAt)])).toEqual(
      sequenced.map(({ id, created_at }) => [id, created_at]),
    );
    expect(events.map(({ event }) => event?.event)).toMatchObject([
      { case: 'paused', value: { status: 'paused' } },
      { case: 'resumed', value: { status: 'online' } },
      { case: 'versionChanged', value: { version: '2.0', previousVersion: '1.0' } },
      { case: 'deleted' },
    ]);
  });

  it('has no event of a change that live clients do not need, or that changes nothing', async () => {
    const ref = await apps.createOwned();
    await apps.set(ref, 'status', 'online');
    await apps.set(ref, 'user_requires_license', true);
    await apps.client.replaceLicenseLevels({ ...ref, levels: ['gold'] });
    await refusalOf(apps.set(ref, 'version', ''));
    expect(await eventsOf(apps.db, ref)).toEqual([]);
  });

  it('has no gap at any moment while instances change an application concurrently', async () => {
    const ref = await apps.createOwned();
    const instances = [apps, apps.connect(), apps.connect()];
    let isDone = false;
    const changes = Promise.allSettled(
      range(1, 60).map((i) => {
        const value = { case: 'stringValue', value: i % 4 ? `2.${i}` : '' } as const;
        return instances[i % 3]?.client.updateApplicationSetting({ ...ref, field: 'version', value });
      }),
    ).finally(() => {
      isDone = true;
    });
    while (!isDone) {
      const seen = await sequencesOf(ref);
      expect(seen).toEqual(range(1, seen.length));
    }
    await changes;
    expect(await sequencesOf(ref)).toEqual(range(1, 45));
    expect((await rowOf(apps.db, ref))?.last_sequence).toBe('45');
  });
});

describe('the list of events', () => {
  it('of applications whose clients reconnect together is read in one statement', async () => {
    const refs = await Promise.all(range(1, 20).map(() => apps.createOwned()));
    for (const ref of refs.slice(0, 2)) await apps.set(ref, 'version', '2.0');
    let counts: number[] = [];
    const sent = await statementsOf(async () => {
      const pages = await Promise.all(refs.map((ref) => apps.client.listApplicationEvents({ ...ref, afterSequence: 0n })));
      counts = pages.map(({ events }) => events.length);
    });
    expect(sent).toHaveLength(1);
    expect(counts).toEqual(range(1, 20).map((i) => (i <= 2 ? 1 : 0)));
  });

  it.each<[bigint, number[]]>([
    [0n, [1, 2, 3]],
    [2n, [3]],
    [3n, []],
    [-(2n ** 63n), [1, 2, 3]],
    [2n ** 63n - 1n, []],
  ])('begins after sequence %d', async (afterSequence, expected) => {
    const applicationId = await insertVersionChanges(apps.db, 3);
    expect(await sequencesOf({ applicationId, afterSequence })).toEqual(expected);
  });

  it('has pages of 1,000 at most', async () => {
    const applicationId = await insertVersionChanges(apps.db, 1_001);
    expect(await sequencesOf({ applicationId })).toEqual(range(1, 1_000));
    expect(await sequencesOf({ applicationId, afterSequence: 4n, pageSize: 2 })).toEqual([5, 6]);
    for (const pageSize of [-1, 1_001])
      expect(await refusalOf(apps.client.listApplicationEvents({ applicationId, pageSize }))).toMatchObject(PAGE_INVALID);
  });

  it.each([randomUUID(), '', 'x', '\0', '\ud800'])('is empty for an unknown id: %j', async (applicationId) => {
    expect(await sequencesOf({ applicationId })).toEqual([]);
  });
});

describe('the list of deleted applications', () => {
  beforeEach(() => apps.db.query('delete from application_event'));

  /** Deletes applications, some at the same time; returns them in their order. */
  async function deleteInGroups(...groups: number[]) {
    const all: Array<OwnedRef & { deletedAt: Date }> = [];
    for (const count of groups) {
      const refs = await Promise.all(range(1, count).map(() => apps.createOwned()));
      for (const ref of refs) await apps.client.deleteApplication(ref);
      const deletions = refs.map((ref) => ({ ...ref, deletedAt: apps.clock.now() }));
      all.push(...deletions.toSorted((a, b) => (a.applicationId < b.applicationId ? -1 : 1)));
      apps.clock.advance(1);
    }
    return all;
  }

  async function listAll(pageSize: number, since?: Date) {
    const all = [];
    let pageToken = '';
    do {
      const request = { pageSize, pageToken, ...(since && { deletedSince: timestampFromDate(since) }) };
      const page = await apps.client.listDeletedApplications(request);
      all.push(...page.applications);
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
    return all.map(({ applicationId, accountId, deletedAt }) => {
      return { applicationId, accountId, deletedAt: deletedAt && timestampDate(deletedAt) };
    });
  }

  it('has those of all accounts since a time, oldest first and each once, in pages of any size', async () => {
    const deletions = await deleteInGroups(1, 3, 2);
    for (const size of [1, 2, 5, 6, 7]) expect(await listAll(size)).toEqual(deletions);
    expect(await listAll(2, deletions[1]?.deletedAt)).toEqual(deletions.slice(1));
    expect(await listAll(10, apps.clock.now())).toEqual([]);
  });

  it.each([
    { pageToken: 'x' },
    { pageSize: 1_001 },
    ...[253_402_300_800n * 1_000n, -(10n ** 17n), 2n ** 62n].map((seconds) => ({ deletedSince: { seconds, nanos: 0 } })),
  ])('rejects an impossible page: %#', async (request) => {
    expect(await refusalOf(apps.client.listDeletedApplications(request))).toMatchObject(PAGE_INVALID);
  });
});

describe('live states', () => {
  const statesOf = async (...applicationIds: string[]) => (await apps.client.batchGetLiveStates({ applicationIds })).states;

  it('agree with a lookup by the socket key, and leave out deleted applications', async () => {
    const [ref, deleted] = [await apps.createOwned(), await apps.createOwned()];
    await apps.client.deleteApplication(deleted);
    const fingerprints = new Set<string>();
    for (const change of [() => apps.set(ref, 'version', '2.0'), () => rotate(ref, 2), () => rotate(ref, 1)]) {
      await change();
      const { socketKey: value } = await apps.keysOf(ref);
      const { lastSequence, keyFingerprint } = await apps.client.lookUpApplication({ key: { case: 'socketKey', value } });
      const ids = [ref.applicationId, ref.applicationId.toUpperCase(), deleted.applicationId, randomUUID(), '', '\0'];
      expect(await statesOf(...ids)).toMatchObject([
        { applicationId: ref.applicationId, lastSequence, socketKeyFingerprint: keyFingerprint },
      ]);
      expect(lastSequence).toBe(1n);
      fingerprints.add(keyFingerprint);
    }
    expect(fingerprints.size).toBe(2);
  });

  it('are given for 1,000 ids at most', async () => {
    expect(await statesOf(...Array(1_000).fill('x'))).toEqual([]);
    expect(await refusalOf(statesOf(...Array(1_001).fill('x')))).toMatchObject(PAGE_INVALID);
  });
});

describe('events that an owner pulls', () => {
  const pull = async (ref: OwnedRef, after?: { epoch: string; sequence: bigint }, pageSize = 0) => {
    const { events, next, gap } = await apps.client.pullApplicationEvents({ ...ref, after, pageSize });
    const position = next as NonNullable<typeof next>;
    return { sequences: events.map(({ sequence }) => Number(sequence)), next: position, gap };
  };

  it('follow the position, in pages, until the application is deleted', async () => {
    const ref = await apps.createOwned();
    const { next: first, ...none } = await pull(ref);
    expect(none).toEqual({ sequences: [], gap: false });
    for (const version of ['2.0', '3.0', '4.0']) await apps.set(ref, 'version', version);
    const page = await pull(ref, first, 2);
    expect(page).toMatchObject({ sequences: [1, 2], gap: false, next: { sequence: 2n } });
    expect(await pull(ref, page.next)).toMatchObject({ sequences: [3], gap: false, next: { sequence: 3n } });
    await apps.client.deleteApplication(ref);
    expect(await refusalOf(pull(ref, page.next))).toMatchObject({ reason: 'application_not_found' });
  });

  it('have a gap where the log was trimmed, is behind the position, or has another epoch', async () => {
    const ref = await apps.createOwned();
    for (const version of ['2.0', '3.0', '4.0']) await apps.set(ref, 'version', version);
    const { next: at3 } = await pull(ref);
    await apps.db.query('delete from application_event where application_id = $1 and sequence < 3', [ref.applicationId]);
    expect(await pull(ref, { ...at3, sequence: 1n })).toMatchObject({ sequences: [3], gap: true });
    expect(await pull(ref, { ...at3, sequence: 2n })).toMatchObject({ sequences: [3], gap: false });
    for (const sequence of [9n, 2n ** 63n - 1n])
      expect(await pull(ref, { ...at3, sequence })).toMatchObject({ sequences: [], gap: true, next: at3 });
    expect(await pull(ref, { epoch: '\0', sequence: 3n })).toMatchObject({ sequences: [3], gap: true, next: at3 });
    expect(await pull(ref)).toMatchObject({ sequences: [3], gap: false });
    await apps.db.query('delete from application_event where application_id = $1', [ref.applicationId]);
    expect(await pull(ref, { ...at3, sequence: 2n })).toMatchObject({ sequences: [], gap: true, next: at3 });
    const epoch = await changeEpoch(apps.db);
    expect(await pull(ref, at3)).toMatchObject({ sequences: [], gap: true, next: { epoch, sequence: 3n } });
    await apps.set(ref, 'version', '5.0');
    expect(await pull(ref, at3)).toMatchObject({ sequences: [4], gap: true, next: { epoch, sequence: 4n } });
  });

  it('are not those of another account', async () => {
    const [ref, { accountId }] = await Promise.all([apps.createOwned(), apps.createOwned()]);
    await apps.set(ref, 'version', '2.0');
    expect(await refusalOf(pull({ ...ref, accountId }))).toMatchObject({ reason: 'application_not_found' });
    expect(await refusalOf(pull({ ...ref, applicationId: 'x' }))).toMatchObject({ reason: 'application_not_found' });
  });
});
