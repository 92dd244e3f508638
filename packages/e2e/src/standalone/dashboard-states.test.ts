import { eventually } from '@latchkey/testkit/eventually';
import type { Page, Route } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { button, checkAccessibility, checkWidth, DESK, fillSignIn, heading, PHONE, useBrowser } from '../client/browser.ts';
import { createApplication, type Owner, signUp } from '../client/caller.ts';
import { IN_CHROMIUM } from '../client/chromium.ts';
import { setSetting } from '../client/live.ts';

/** Messages for an owner whose request gets this response; 0 for none. */
const FAILURES = [
  { status: 503, code: 'INTERNAL_ERROR', shows: 'Latchkey is busy or restarting' },
  { status: 403, code: 'insufficient_scope', shows: 'You may not do this' },
  { status: 429, code: 'rate_limit_reached', shows: 'Too many requests' },
  { status: 0, code: '', shows: 'Latchkey is unreachable' },
] as const;

/** Lets the first message of the service be followed by 10,000 events. */
const FLOOD = `globalThis.WebSocket = class extends WebSocket {
  constructor(...settings) {
    super(...settings);
    const flood = async ({ data }) => {
      const event = { ...JSON.parse(data), type: 'latchkey.application.version_changed' };
      for (let i = 1; i <= 10_000; i += 1) {
        Object.assign(event, { id: 'event-' + i, sequence: String(i), data: { previousVersion: '1', version: '<b>' + i } });
        this.dispatchEvent(new MessageEvent('message', { data: JSON.stringify(event) }));
        if (i % 500 === 0) await new Promise((resolve) => setTimeout(resolve));
      }
    };
    this.addEventListener('message', (message) => setTimeout(flood, 0, message), { once: true });
  }
};`;

describe('the dashboard when something is wrong', IN_CHROMIUM, () => {
  const open = useBrowser();
  let owner: Owner;
  let application: string;
  beforeAll(async () => {
    owner = await signUp();
    application = `/applications/${await createApplication(owner.session, 'Difference Engine')}`;
  });

  it('says on every page what happened, and shows the page by "Try again"', async () => {
    const pages = [
      ['Applications', '**/list-applications?*', 'Difference Engine'],
      ['Difference Engine', '**/get-application-settings?*', 'License required for users'],
      ['Levels', '**/get-application-license-levels?*', 'Add level'],
      ['Files', '**/get-files-table?*', 'No files yet'],
      ['API keys', '**/panel/api-keys', 'Let programs work for you'],
      ['Audit log', '**/panel/audit-log*', 'Account created'],
      ['Account', '**/auth/sessions', 'This session'],
    ] as const;
    let failure: (typeof FAILURES)[number] = FAILURES[0];
    const fail = (route: Route) => {
      const { status, code } = failure;
      const headers = { 'x-request-id': 'request-7', ...(status === 429 && { 'retry-after': '1' }) };
      const json = { success: false, code, message: 'Refused' };
      return status === 0 ? route.abort() : route.fulfill({ status, json, headers });
    };
    const prepare = async (page: Page) => {
      await page.clock.install();
      for (const [, request] of pages) await page.route(request, fail);
    };
    const page = await open('/applications', { owner, statuses: [0, 403, 429, 503], prepare });
    for (const [link, request, shows] of pages) {
      // The words for each failure are the same on every page.
      for (failure of request === pages[0][1] ? FAILURES : FAILURES.slice(0, 1)) {
        await (failure === FAILURES[0] ? page.getByRole('link', { name: link, exact: true }) : button(page, 'Try again')).click();
        const isShown = async () => {
          // The dashboard waits before it reads again.
          await page.clock.fastForward(1_000);
          return page.getByRole('alert').getByText(failure.shows).isVisible();
        };
        await eventually(isShown, { timeoutMs: 15_000 });
        if (failure.status !== 0) await page.getByText('request-7').waitFor();
      }
      await page.unroute(request);
      await page.clock.fastForward(1_000);
      await button(page, 'Try again').click();
      await page.getByText(shows).last().waitFor();
    }
  });

  it('keeps the frame while the service is away or limits requests, says when it tries again, and does', async () => {
    let failure: 'none' | 'away' | 'limited' = 'none';
    const prepare = async (page: Page) => {
      await page.clock.install();
      await page.route('**/*', (route) => {
        const isCall = route.request().url().includes('/api/');
        if (failure === 'away') return route.abort();
        const json = { success: false, code: 'rate_limit_reached', message: 'Too many requests' };
        return failure === 'limited' && isCall
          ? route.fulfill({ status: 429, headers: { 'retry-after': '1' }, json })
          : route.continue();
      });
    };
    const recover = async (page: Page) => {
      failure = 'none';
      await page.clock.fastForward(6_000);
    };
    failure = 'limited';
    const page = await open(application, { owner, statuses: [0, 429], prepare });
    const navigation = page.getByRole('navigation', { name: 'Main' });
    await page.getByRole('alert').getByText('Trying again in 1 s.').waitFor();
    await navigation.waitFor();
    await checkAccessibility(page);
    await recover(page);
    await page.getByText('lk_http_').waitFor();

    // The scripts of other pages are loaded once the first one is idle.
    await page.goto('/applications');
    await page.getByRole('link', { name: 'Difference Engine' }).waitFor();
    failure = 'away';
    await navigation.getByRole('link', { name: 'API keys' }).click();
    await page.getByText('Latchkey is unreachable').waitFor();
    await page.getByText('Trying again in').waitFor();
    await navigation.waitFor();
    await recover(page);
    await page.getByText('Let programs work for you').waitFor();
    await Promise.all([page.waitForResponse('**/assets/pages-*.js'), page.goto('/applications')]);
    failure = 'away';
    await navigation.getByRole('link', { name: 'Account' }).click();
    await heading(page, 'Account').waitFor();
    await page.evaluate("dispatchEvent(new Event('visibilitychange'))");
    await page.getByText('Latchkey is unreachable. What you see may be out of date.').waitFor();
    await recover(page);
    await page.getByText('What you see may be out of date.').waitFor({ state: 'detached' });
  });

  it('says what happened when it is offline or the page does not exist', async () => {
    const page = await open('/nowhere', { owner, statuses: [404] });
    await page.getByText('There is no such page').waitFor();
    await page.goto('/applications/01a20701-0000-7000-8000-000000000000');
    await page.getByText('There is no such application').waitFor();
    await checkAccessibility(page);
    await page.context().setOffline(true);
    await page.getByText('You are offline.').waitFor();
    await page.context().setOffline(false);
    await page.getByText('You are offline.').waitFor({ state: 'detached' });
  });

  it('shows 200 applications with hostile names as text, within the width of any window', async () => {
    const many = await signUp();
    const hostile = [
      '<img src=x onerror=alert(1)>',
      '\u202Eenignedesrever',
      'لوحة التحكم الرئيسية',
      '漢'.repeat(32),
      'W'.repeat(32),
    ];
    const names = [...hostile, ...Array.from({ length: 195 }, (_, index) => `Application ${index}`)];
    const ids: string[] = [];
    for (let i = 0; i < names.length; i += 5)
      ids.push(...(await Promise.all(names.slice(i, i + 5).map((name) => createApplication(many.session, name)))));
    await setSetting(many.session, ids.at(-1) ?? '', 'status', 'paused');
    const page = await open('/applications', { owner: many });
    await page.setViewportSize(PHONE);
    await page.getByRole('link', { name: '<img src=x onerror=alert(1)>' }).waitFor();
    await checkWidth(page);
    await page.setViewportSize(DESK);
    await page.getByText('Page 1 of 4').waitFor();
    expect(await page.locator('tbody tr').count()).toBe(50);
    await button(page, 'Status').click();
    await button(page, 'Status').click();
    await page.getByRole('row', { name: /^Application 194 Paused 1.0 0 0 MiB/ }).waitFor();
    expect(new URL(page.url()).search).toBe('?sort=-status');
    // The newest first.
    await button(page, 'Last change').click();
    await page.waitForURL('**/applications?sort=-updatedAt');
    await button(page, 'Next').click();
    await page.getByText('Page 2 of 4').waitFor();
    await page.setViewportSize(PHONE);
    await button(page, 'Name').click();
    await page.getByText('Page 1 of 4').waitFor();
    await page.getByLabel('Search applications').fill('漢漢');
    await expect.poll(() => page.locator('tbody tr').count()).toBe(1);
    await page.getByRole('link', { name: '漢'.repeat(32) }).click();
    await heading(page, '漢'.repeat(32)).waitFor();
    await checkWidth(page);
    await page.goBack();
    expect(await page.getByLabel('Search applications').inputValue()).toBe('漢漢');
    await page.goto('/applications?page=9');
    await button(page, 'Go to the last page').click();
    await page.getByText('Page 4 of 4').waitFor();
  });

  it('stays usable under 10,000 events, the newest of which it shows', async () => {
    const page = await open(`${application}/live`, { owner, prepare: (page) => page.addInitScript({ content: FLOOD }) });
    await page.getByRole('row', { name: /^10000 Version changed/ }).waitFor();
    expect(await page.locator('tbody tr').count()).toBe(200);
    await checkWidth(page);
    await button(page, 'Clear').click();
    await page.getByText('No events in the last 24 hours').waitFor();
  });

  it('signs a second tab out, and in again, with the first one', async () => {
    const person = await signUp();
    const applicationId = await createApplication(person.session);
    const first = await open('/applications', { owner: person });
    const second = await open(`/applications/${applicationId}/levels`, { owner: person, statuses: [401] });
    await button(second, 'Add level').click();
    await second.getByLabel('Level 1').fill('basic');
    await button(first, /^Account of/).press('Enter');
    await first.getByRole('menuitem', { name: 'Sign out' }).press('Enter');
    await heading(first, 'Sign in').waitFor();
    await heading(second, 'Sign in').waitFor();
    await fillSignIn(first, person);
    await heading(first, 'Applications').waitFor();
    await heading(second, 'Applications').waitFor();
  });
});
