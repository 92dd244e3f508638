import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest';
import { BROWSER_ARGS, fillSignIn, heading, useBrowser } from '../client/browser.ts';
import { createApplication, type Owner, signUp } from '../client/caller.ts';
import { chromiumPath, IN_CHROMIUM } from '../client/chromium.ts';
import { proxyTo } from '../fakes/page-server.ts';

/** Values of `returnTo`, as the router parses them from the URL; search.test.ts has more texts. */
const OTHER_SITES = [
  'https://evil.test/',
  '/%09/evil.test',
  '"https://evil.test/"',
  '["https://evil.test/"]',
  '//evil.test&returnTo=https://evil.test/',
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

describe('an attack on the dashboard', IN_CHROMIUM, () => {
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
    // The page before has fields of the same names.
    await heading(page, 'Sign in').waitFor();
    await fillSignIn(page, owner);
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

  it.each([
    ['follows the headers', []],
    ['stores pages despite the headers', ['cache-control', 'clear-site-data']],
  ])('by the Back button after the sign-out shows no page of the account in a browser that %s', async (_does, dropped) => {
    const person = await signUp();
    const page = await openWithBackForwardCache(person, dropped);
    await page.goto(`/applications/${await createApplication(person.session)}`);
    await page.getByRole('button', { name: 'Reveal socket key' }).waitFor();
    // Before its code is loaded, the button of the menu does nothing.
    await page.locator('[aria-haspopup="menu"]', { hasText: 'Account of' }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await heading(page, 'Sign in').waitFor();
    await page.goBack({ waitUntil: 'commit' });
    // The heading, not an event, shows that the page is loaded.
    await page.waitForURL('/sign-in?returnTo=*', { timeout: 15_000, waitUntil: 'commit' });
    await heading(page, 'Sign in').waitFor();
    expect(await page.getByRole('button', { name: 'Reveal socket key' }).count()).toBe(0);
  });
});

let cachingBrowser: Promise<Browser> | undefined;
afterAll(async () => (await cachingBrowser)?.close());

/** A page in a browser with this cache, which Playwright disables, and the session of an account. */
async function openWithBackForwardCache({ cookie }: Owner, droppedHeaders: readonly string[]): Promise<Page> {
  const proxy = createServer(proxyTo(inject('latchkeyInstance').baseUrl, droppedHeaders)).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  onTestFinished(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const baseURL = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const ignoreDefaultArgs = ['--disable-back-forward-cache'];
  cachingBrowser ??= chromium.launch({ executablePath: chromiumPath ?? '', args: BROWSER_ARGS, ignoreDefaultArgs });
  const context = await (await cachingBrowser).newContext({ baseURL });
  onTestFinished(() => context.close());
  const [name = '', value = ''] = cookie.split('=');
  await context.addCookies([{ name, value, url: baseURL, httpOnly: true, sameSite: 'Lax' }]);
  return context.newPage();
}
