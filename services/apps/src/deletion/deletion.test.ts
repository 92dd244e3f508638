import { randomUUID } from 'node:crypto';
import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { refusalOf } from '@latchkey/testkit/refusal';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApps, type TestApps } from '../testing/test-apps.ts';

let apps: TestApps;
beforeAll(async () => {
  apps = await startTestApps();
});
afterAll(() => apps.stop());
beforeEach(() => apps.db.query('delete from application_event'));

/** Deletes a new application, and says what the list is to say of it. */
async function deleteOne() {
  const ref = await apps.createOwned();
  await apps.client.deleteApplication(ref);
  return { ...ref, deletedAt: apps.clock.now() };
}

/** Deletes applications, the clock standing for each given number of them. */
async function deleteInGroups(...groups: number[]) {
  const deletions = [];
  for (const count of groups) {
    const group = [];
    for (let i = 0; i < count; i += 1) group.push(await deleteOne());
    deletions.push(...group.toSorted((a, b) => (a.applicationId < b.applicationId ? -1 : 1)));
    apps.clock.advance(1);
  }
  return deletions;
}

async function pagesOf(pageSize: number, since?: Date) {
  const pages = [];
  let pageToken = '';
  do {
    const request = { pageSize, pageToken, ...(since && { deletedSince: timestampFromDate(since) }) };
    const answer = await apps.client.listDeletedApplications(request);
    pages.push(
      answer.applications.map(({ applicationId, accountId, deletedAt }) => {
        return { applicationId, accountId, deletedAt: deletedAt && timestampDate(deletedAt) };
      }),
    );
    pageToken = answer.nextPageToken;
  } while (pageToken !== '');
  return pages;
}

describe('the list of deleted applications', () => {
  it('is empty when none was deleted, whatever else happened', async () => {
    const ref = await apps.createOwned();
    await apps.client.updateApplicationSetting({ ...ref, field: 'status', value: { case: 'stringValue', value: 'paused' } });
    expect(await pagesOf(10)).toEqual([[]]);
  });

  it.each([1, 2, 3, 5, 6, 7])('has those of all accounts, oldest first and each once, in pages of %i', async (size) => {
    const deletions = await deleteInGroups(1, 3, 2);
    const pages = await pagesOf(size);
    expect(pages.flat()).toEqual(deletions);
    expect(pages).toHaveLength(Math.ceil(deletions.length / size));
  });

  it('begins at the time that is asked for, that time included', async () => {
    const deletions = await deleteInGroups(2, 2, 2);
    expect(await pagesOf(3, deletions[2]?.deletedAt)).toEqual([deletions.slice(2, 5), deletions.slice(5)]);
    expect(await pagesOf(10, apps.clock.now())).toEqual([[]]);
    expect((await pagesOf(10, new Date(0))).flat()).toEqual(deletions);
  });

  it('goes on in the right place when more are deleted between two pages', async () => {
    const deletions = await deleteInGroups(3);
    const { nextPageToken } = await apps.client.listDeletedApplications({ pageSize: 2 });
    deletions.push(...(await deleteInGroups(1)));
    const rest = await apps.client.listDeletedApplications({ pageToken: nextPageToken });
    const ids = deletions.slice(2).map(({ applicationId }) => applicationId);
    expect(rest.applications.map(({ applicationId }) => applicationId)).toEqual(ids);
  });
});

describe('a page of deleted applications that can’t be', () => {
  const INVALID = { reason: 'page_token_invalid', kind: 'malformed', code: 'VALIDATION_ERROR' };

  it.each([{ pageToken: 'x' }, { pageSize: -1 }, { pageSize: 1_001 }])('is refused: %j', async (request) => {
    expect(await refusalOf(apps.client.listDeletedApplications(request))).toMatchObject(INVALID);
  });

  it.each([253_402_300_800n * 1_000n, -(10n ** 17n), 2n ** 62n])(
    'is refused for a time that there is not: %d s',
    async (seconds) => {
      const deletedSince = { seconds, nanos: 0 };
      expect(await refusalOf(apps.client.listDeletedApplications({ deletedSince }))).toMatchObject(INVALID);
    },
  );

  it('is no page, but an end, for a place past the last', async () => {
    await deleteInGroups(1);
    const pageToken = Buffer.from(`99999999999999 ${randomUUID()}`).toString('base64url');
    expect(await apps.client.listDeletedApplications({ pageToken })).toMatchObject({ applications: [], nextPageToken: '' });
  });
});
