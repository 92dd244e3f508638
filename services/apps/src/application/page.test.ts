import { randomUUID } from 'node:crypto';
import { refusalOf } from '@latchkey/testkit/refusal';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApps, type TestApps } from '../testing/test-apps.ts';

let apps: TestApps;
beforeAll(async () => {
  apps = await startTestApps();
});
afterAll(() => apps.stop());

interface Filter {
  readonly applicationIds: string[];
}

/** Makes applications, the clock standing for each given number of them. */
async function createInGroups(accountId: string, groups: readonly number[]): Promise<string[]> {
  const ids: string[] = [];
  for (const count of groups) {
    for (let i = 0; i < count; i += 1) {
      ids.push((await apps.client.createApplication({ accountId, name: `Application ${ids.length}` })).applicationId);
    }
    apps.clock.advance(1);
  }
  return ids;
}

/** Reads every page; the ids of each. */
async function pagesOf(accountId: string, pageSize: number, filter?: Filter): Promise<string[][]> {
  const pages: string[][] = [];
  let pageToken = '';
  do {
    const answer = await apps.client.listApplications({ accountId, pageSize, pageToken, ...(filter && { filter }) });
    pages.push(answer.applications.map(({ id }) => id));
    pageToken = answer.nextPageToken;
  } while (pageToken !== '');
  return pages;
}

describe('the list of an account’s applications', () => {
  it('is empty for an account that has none, and never shows another account’s', async () => {
    await apps.createOwned();
    expect(await pagesOf(randomUUID(), 10)).toEqual([[]]);
  });

  it('is ordered by creation, not by id or name', async () => {
    const accountId = randomUUID();
    const first = await apps.client.createApplication({ accountId, name: 'Zulu 1' });
    apps.clock.advance(-60_000);
    const earlier = await apps.client.createApplication({ accountId, name: 'Yankee' });
    apps.clock.advance(120_000);
    const later = await apps.client.createApplication({ accountId, name: 'Alfa 1' });
    expect(await pagesOf(accountId, 10)).toEqual([[earlier.applicationId, first.applicationId, later.applicationId]]);
  });

  it.each([1, 2, 3, 4, 6, 7, 8])(
    'is whole, in order and without repetition in pages of %i, also where times are equal',
    async (size) => {
      const accountId = randomUUID();
      const ids = await createInGroups(accountId, [1, 4, 2]);
      const pages = await pagesOf(accountId, size);
      expect(pages.flat()).toEqual(ids);
      expect(pages).toHaveLength(Math.ceil(ids.length / size));
      expect(pages.slice(0, -1).every((page) => page.length === size)).toBe(true);
    },
  );

  it('goes on in the right place when applications come and go between two pages', async () => {
    const accountId = randomUUID();
    const ids = await createInGroups(accountId, [3, 3]);
    const [first = '', second = '', third = ''] = ids;
    const page = await apps.client.listApplications({ accountId, pageSize: 2 });
    await apps.client.deleteApplication({ accountId, applicationId: second });
    await apps.client.deleteApplication({ accountId, applicationId: first });
    const [added = ''] = await createInGroups(accountId, [1]);
    const rest = await apps.client.listApplications({ accountId, pageToken: page.nextPageToken });
    expect(rest.applications.map(({ id }) => id)).toEqual([third, ...ids.slice(3), added]);
  });

  it('has pages of 1,000 at most, and as many without a size', async () => {
    const accountId = randomUUID();
    const { client } = apps.connect({ env: { APPLICATIONS_LIMIT: '1001' } });
    const ids: string[] = [];
    for (let i = 0; i < 21; i += 1) {
      const made = await Promise.all(
        Array.from({ length: i < 20 ? 50 : 1 }, () => client.createApplication({ accountId, name: 'Application' })),
      );
      ids.push(...made.map(({ applicationId }) => applicationId));
    }
    expect((await pagesOf(accountId, 0)).map((page) => page.length)).toEqual([1_000, 1]);
    expect((await pagesOf(accountId, 1_000)).flat()).toEqual(ids.toSorted());
  });
});

describe('a filter', () => {
  it('that is absent means all, and one that is empty means none', async () => {
    const accountId = randomUUID();
    const ids = await createInGroups(accountId, [3]);
    expect(await pagesOf(accountId, 10)).toEqual([ids]);
    expect(await pagesOf(accountId, 10, { applicationIds: [] })).toEqual([[]]);
  });

  it('shows only what the account has, in order and each once', async () => {
    const accountId = randomUUID();
    const [first = '', second = '', third = ''] = await createInGroups(accountId, [1, 1, 1]);
    const foreign = await apps.createOwned();
    const applicationIds = [third, 'x', '', '\0', third, foreign.applicationId, randomUUID(), first.toUpperCase()];
    expect(await pagesOf(accountId, 10, { applicationIds })).toEqual([[first, third]]);
    expect(await pagesOf(accountId, 1, { applicationIds: [third, second, first] })).toEqual([[first], [second], [third]]);
  });

  it('of nothing but text that is no id shows nothing', async () => {
    const { accountId } = await apps.createOwned();
    expect(await pagesOf(accountId, 10, { applicationIds: ['', '*', '%', 'null', '\ud800'] })).toEqual([[]]);
  });
});

describe('a page that can’t be', () => {
  const INVALID = { reason: 'page_token_invalid', kind: 'malformed', code: 'VALIDATION_ERROR' };
  const token = (text: string) => Buffer.from(text).toString('base64url');
  const id = '018f2b6c-7d1e-7a3b-9c4d-5e6f708192a3';

  it.each([
    'x',
    '!!!!',
    ' ',
    '\0',
    token('1778576400000'),
    token(id),
    token(`${id} 1778576400000`),
    token(`-1 ${id}`),
    token(`1e3 ${id}`),
    token(`999999999999999 ${id}`),
    token(`1778576400000 ${id.toUpperCase()}`),
    token(`01778576400000 ${id}`),
    token(`1778576400000 ${id} `),
    token(`1778576400000 ${id}' or true`),
    token(`1778576400000  ${id}`),
    `${token(`1778576400000 ${id}`)}=`,
    `${token(`1778576400000 ${id}`)}!`,
    `\n${token(`1778576400000 ${id}`)}`,
    token('x'.repeat(100_000)),
  ])('is refused for its token, with or without a filter: %#', async (pageToken) => {
    const { accountId } = await apps.createOwned();
    expect(await refusalOf(apps.client.listApplications({ accountId, pageToken }))).toMatchObject(INVALID);
    const filter = { applicationIds: [] };
    expect(await refusalOf(apps.client.listApplications({ accountId, pageToken, filter }))).toMatchObject(INVALID);
  });

  it.each([-1, 1_001, -2_147_483_648, 2_147_483_647, 1.5, Number.NaN])('is refused for its size: %d', async (pageSize) => {
    const { accountId } = await apps.createOwned();
    expect(await refusalOf(apps.client.listApplications({ accountId, pageSize }))).toMatchObject(INVALID);
  });

  it('is no page, but an end, for a token past the last application', async () => {
    const { accountId } = await apps.createOwned();
    const pageToken = token(`99999999999999 ${id}`);
    const answer = await apps.client.listApplications({ accountId, pageToken });
    expect(answer).toMatchObject({ applications: [], nextPageToken: '' });
  });

  it('shows nothing of another account for a token of its list', async () => {
    const accountId = randomUUID();
    await createInGroups(accountId, [2]);
    const { nextPageToken } = await apps.client.listApplications({ accountId, pageSize: 1 });
    const foreign = await apps.createOwned();
    const answer = await apps.client.listApplications({ accountId: foreign.accountId, pageToken: nextPageToken });
    expect(answer.applications.map(({ id }) => id)).toEqual([foreign.applicationId]);
  });
});
