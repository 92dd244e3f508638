import { randomUUID } from 'node:crypto';
import { refusalOf } from '@latchkey/testkit/refusal';
import { describe, expect, it } from 'vitest';
import { useTestApps } from '../testing/test-apps.ts';

const apps = useTestApps();

interface Filter {
  readonly applicationIds: string[];
}

/** Makes applications, those of a group at the same time. */
async function createInGroups(accountId: string, groups: readonly number[]): Promise<string[]> {
  const ids: string[] = [];
  for (const count of groups) {
    for (let i = 0; i < count; i += 1)
      ids.push((await apps.client.createApplication({ accountId, name: 'Application' })).applicationId);
    apps.clock.advance(1);
  }
  return ids;
}

/** Reads every page; the ids of each. */
async function pagesOf(accountId: string, pageSize: number, filter?: Filter): Promise<string[][]> {
  const pages: string[][] = [];
  let pageToken = '';
  do {
    const page = await apps.client.listApplications({ accountId, pageSize, pageToken, ...(filter && { filter }) });
    pages.push(page.applications.map(({ id }) => id));
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  return pages;
}

describe('the list of applications', () => {
  it('is ordered by creation, not by id', async () => {
    const accountId = randomUUID();
    const [first = ''] = await createInGroups(accountId, [1]);
    apps.clock.advance(-60_000);
    const [earlier = ''] = await createInGroups(accountId, [1]);
    apps.clock.advance(120_000);
    expect(await pagesOf(accountId, 10)).toEqual([[earlier, first]]);
    expect(await pagesOf(randomUUID(), 10)).toEqual([[]]);
  });

  it('is whole and in order in pages of any size, also if times are equal', async () => {
    const accountId = randomUUID();
    const ids = await createInGroups(accountId, [1, 4, 2]);
    for (const size of [1, 2, 6, 7, 8]) {
      const pages = await pagesOf(accountId, size);
      expect(pages.flat()).toEqual(ids);
      expect(pages).toHaveLength(Math.ceil(ids.length / size));
    }
  });

  it('skips and repeats none of the others if applications come and go between two pages', async () => {
    const accountId = randomUUID();
    const ids = await createInGroups(accountId, [3, 3]);
    const { nextPageToken: pageToken } = await apps.client.listApplications({ accountId, pageSize: 2 });
    for (const applicationId of ids.slice(0, 2)) await apps.client.deleteApplication({ accountId, applicationId });
    const added = await createInGroups(accountId, [1]);
    const rest = await apps.client.listApplications({ accountId, pageToken });
    expect(rest.applications.map(({ id }) => id)).toEqual([...ids.slice(2), ...added]);
    const foreign = await apps.createOwned();
    const other = await apps.client.listApplications({ accountId: foreign.accountId, pageToken });
    expect(other.applications.map(({ id }) => id)).toEqual([foreign.applicationId]);
  });

  it('has only the filtered applications of the account, each once; an empty filter matches none', async () => {
    const accountId = randomUUID();
    const [first = '', second = '', third = ''] = await createInGroups(accountId, [1, 1, 1]);
    const foreign = await apps.createOwned();
    const applicationIds = [third, 'x', '\0', third, foreign.applicationId, randomUUID(), first.toUpperCase()];
    expect(await pagesOf(accountId, 1, { applicationIds })).toEqual([[first], [third]]);
    expect(await pagesOf(accountId, 10)).toEqual([[first, second, third]]);
    for (const none of [[], ['', '*', '\ud800']]) expect(await pagesOf(accountId, 10, { applicationIds: none })).toEqual([[]]);
  });
});

describe('an impossible page', () => {
  const INVALID = { reason: 'page_token_invalid', kind: 'malformed', code: 'VALIDATION_ERROR' };
  const token = (text: string) => Buffer.from(text).toString('base64url');
  const id = '018f2b6c-7d1e-7a3b-9c4d-5e6f708192a3';

  it.each([
    '!!!!',
    '\0',
    token(id),
    token(`-1 ${id}`),
    token(`999999999999999 ${id}`),
    token(`1778576400000 ${id.toUpperCase()}`),
    token(`1778576400000 ${id}' or true`),
    `${token(`1778576400000 ${id}`)}=`,
    token('x'.repeat(100_000)),
  ])('is rejected for its token: %#', async (pageToken) => {
    expect(await refusalOf(apps.client.listApplications({ accountId: randomUUID(), pageToken }))).toMatchObject(INVALID);
  });

  it.each([-1, 1_001, 2_147_483_647, 1.5, Number.NaN])('is rejected for its size: %d', async (pageSize) => {
    expect(await refusalOf(apps.client.listApplications({ accountId: randomUUID(), pageSize }))).toMatchObject(INVALID);
  });

  it('is empty for a token beyond the last application', async () => {
    const { accountId } = await apps.createOwned();
    const page = await apps.client.listApplications({ accountId, pageToken: token(`99999999999999 ${id}`) });
    expect(page).toMatchObject({ applications: [], nextPageToken: '' });
  });
});
