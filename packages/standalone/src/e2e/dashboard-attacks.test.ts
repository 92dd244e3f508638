import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { useBrowser } from '../testing/browser.ts';
import { createApplication, type Owner, signUp } from '../testing/caller.ts';
import { chromiumPath } from '../testing/chromium.ts';

const heading = (page: Page, name?: string) => page.getByRole('heading', { level: 1, ...(name !== undefined && { name }) });

/** Values of `returnTo`, as they are in the URL. */
const OTHER_SITES = [
  'https://evil.test/',
  'https:evil.test',
  '//evil.test',
  '/\\evil.test',
  '%5C%5Cevil.test',
  '/%09/evil.test',
  '/%0A/evil.test',
  '%20//evil.test',
  '/..//evil.test',
  '/%2e%2e//evil.test',
  '%2F%2Fevil.test',
  '"https://evil.test/"',
  '["https://evil.test/"]',
  '//evil.test&returnTo=https://evil.test/',
  '{"href":"https://evil.test/"}',
  'javascript:alert(1)',
  'data:text/html,evil',
  'x&__proto__={"returnTo":"https://evil.test/"}',
];

/** Searches and fragments of links, which no page may fail at. */
const hostileLinks = (applicationId: string) => [
  '/applications?search={"a":1}&create={}&__proto__={"search":{"a":1}}',
  '/applications/__proto__?search=[1]#__proto__',
  `/applications/${applicationId}/files?page={"a":1}&search={"b":[]}`,
  `/applications/${applicationId}/files?page=9007199254740991&search=__proto__`,
  '/api-keys?key={"a":1}&all=[]&create="true"',
  '/audit-log?application=[1]&action={"a":1}',
  '/audit-log?application=__proto__',
  '/audit-log?action=__proto__',
  '/sign-in?error=__proto__',
  '/sign-in?error={"a":1}&error=constructor',
  '/sign-in?error=two_factor_required&returnTo={}',
  '/sign-up?returnTo={"a":1}',
  '/reset-password#token=__proto__&token=%00',
  '/confirm-email#token=%E0%A4%A',
];

describe.skipIf(chromiumPath === undefined)('an attack on the dashboard', { timeout: 120_000 }, () => {
  const open = useBrowser();
  let owner: Owner;
  beforeAll(async () => {
    owner = await signUp();
  });

  it('by a link that leads to another site after the sign-in stays in the dashboard', async () => {
    const page = await open('/account', { owner });
    for (const returnTo of OTHER_SITES) {
      await page.goto(`/sign-in?returnTo=${returnTo}`);
      await page.waitForURL('/applications');
      await heading(page, 'Applications').waitFor();
    }
    await page.context().clearCookies();
    await page.goto('/sign-up?returnTo=/%09/evil.test');
    await page.getByRole('link', { name: 'Sign in' }).click();
    await page.getByLabel('Email').fill(owner.email);
    await page.getByLabel('Password').fill(owner.password);
    await page.keyboard.press('Enter');
    await heading(page, 'Applications').waitFor();
  });

  it('by a link with hostile parameters breaks no page', async () => {
    const links = hostileLinks(await createApplication(owner.session));
    const page = await open('/account', { owner, statuses: [400, 404] });
    for (const link of links) {
      await page.goto(link);
      await heading(page).waitFor();
      await page.waitForLoadState('networkidle');
      expect(await page.getByText('Something went wrong in this page').count(), link).toBe(0);
      expect(page.url(), 'the address without what the page rejected').not.toMatch(/[{[]|%[57]B/);
    }
  });
});
