import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isTestAll } from '@latchkey/testkit/vitest/test-all';
import type { AxeResults, RunOptions } from 'axe-core';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { beforeAll, expect, inject, onTestFinished } from 'vitest';
import type { Owner } from './caller.ts';
import { chromiumPath } from './chromium.ts';

const REPORT_VIOLATIONS = `document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
  console.error('securitypolicyviolation', violatedDirective, blockedURI));`;
const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');
const EXCESS_WIDTH = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';

/** More processes would only cost time. */
export const BROWSER_ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--in-process-gpu',
  '--process-per-site',
  '--renderer-process-limit=1',
];

export const DESK = { width: 1_280, height: 800 };
export const PHONE = { width: 360, height: 740 };

export interface OpenOptions {
  /** Owner of the browser's session; none without. */
  readonly owner?: Owner;
  /**
   * HTTP statuses of errors that the test causes, 0 for none: the browser reports each on its
   * console.
   */
  readonly statuses?: readonly number[];
  /** Preparation of the page before it loads. */
  readonly prepare?: (page: Page) => Promise<unknown>;
}

export const heading = (page: Page, name?: string | RegExp) =>
  page.getByRole('heading', { level: 1, ...(name !== undefined && { name }) });
export const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name, exact: typeof name === 'string' });
/** Toasts have the role too. */
export const dialog = (page: Page) => page.locator('[role="dialog"]:not([aria-modal="false"])');

export async function fillSignIn(page: Page, { email, password }: Pick<Owner, 'email' | 'password'>): Promise<void> {
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill(password);
  await page.keyboard.press('Enter');
}

let launched: Promise<BrowserContext> | undefined;

/** The browser of all files of a worker, which ends with its process: a start costs seconds. */
export function openBrowser(): Promise<BrowserContext> {
  launched ??= launch();
  return launched;
}

async function launch(): Promise<BrowserContext> {
  const browser = await chromium.launch({ executablePath: chromiumPath ?? '', args: BROWSER_ARGS });
  const baseURL = inject('latchkeyInstance').baseUrl;
  const context = await browser.newContext({ baseURL, viewport: DESK, reducedMotion: 'reduce' });
  // The page of the OpenAPI document takes 25 seconds on a busy machine.
  context.setDefaultTimeout(60_000);
  // Its process stays, and the pages of the tests share it.
  await (await context.newPage()).goto('/healthz');
  return context;
}

/**
 * A browser whose tests share only its cache. Its pages fail their test when
 * the dashboard misbehaves.
 */
export function useBrowser() {
  let context: BrowserContext;
  beforeAll(async () => {
    context = await openBrowser();
  });

  /**
   * Opens a page of the dashboard. The test fails if that reports an error on the console, breaks
   * the Content-Security-Policy, or sends a request to another origin.
   */
  return async (path: string, { owner, statuses = [], prepare }: OpenOptions = {}): Promise<Page> => {
    const { baseUrl, realtimeUrl } = inject('latchkeyInstance');
    // Pages of one test are tabs of one session.
    if (context.pages().length === 1) await context.clearCookies();
    if (owner) {
      const [name = '', value = ''] = owner.cookie.split('=');
      await context.addCookies([{ name, value, url: baseUrl, httpOnly: true, sameSite: 'Lax' }]);
    }
    const page = await context.newPage();
    // Download URLs begin with PUBLIC_URL.
    const publicUrl = baseUrl.replace('127.0.0.1', 'localhost');
    const problems = watch(page, [baseUrl, publicUrl, new URL(realtimeUrl).origin], statuses);
    onTestFinished(async () => {
      await page.close();
      expect(problems).toEqual([]);
    });
    await page.addInitScript({ content: REPORT_VIOLATIONS });
    await prepare?.(page);
    await page.goto(path);
    return page;
  };
}

function watch(page: Page, origins: readonly string[], statuses: readonly number[]): readonly string[] {
  const problems: string[] = [];
  const expected = statuses.map((status) => (status === 0 ? 'net::ERR_' : `the server responded with a status of ${status} `));
  page.on('console', (message) => {
    const text = message.text();
    if (message.type() === 'error' && !expected.some((part) => text.includes(part))) problems.push(text);
  });
  page.on('pageerror', (err) => problems.push(String(err)));
  const check = (url: string) => {
    if (!/^(data|blob):/.test(url) && !origins.some((origin) => url.startsWith(`${origin}/`))) problems.push(`request to ${url}`);
  };
  page.on('request', (request) => check(request.url()));
  page.on('websocket', (socket) => check(socket.url()));
  return problems;
}

/**
 * Checks the page with axe, and that no element is wider than the window.
 *
 * @param withColors the contrast of its colours too, in light and dark: most of the cost. In
 *   `npm run test:all`, each page has one such check; dialogs have the same colours.
 */
export async function checkAccessibility(page: Page, { withColors = isTestAll } = {}): Promise<void> {
  await check(page, { rules: { 'color-contrast': { enabled: false } } });
  for (const colorScheme of withColors ? (['light', 'dark'] as const) : []) {
    await page.emulateMedia({ colorScheme });
    await check(page, { runOnly: ['color-contrast'] });
  }
  await checkWidth(page);
}

async function check(page: Page, options: RunOptions): Promise<void> {
  const run = `globalThis.axe.run(${JSON.stringify({ resultTypes: ['violations'], ...options })}).then(({ violations }) => violations)`;
  if (!(await page.evaluate('"axe" in globalThis'))) await page.evaluate(AXE);
  const violations = await page.evaluate<AxeResults['violations']>(run);
  const found = violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => ({ id, html, failureSummary })));
  expect(found, page.url()).toEqual([]);
}

/** No horizontal scrolling of the page, at any width of a window. */
export async function checkWidth(page: Page): Promise<void> {
  const wider = await page.evaluate(EXCESS_WIDTH);
  expect(wider, `pixels that ${page.url()} is wider than its window`).toBe(0);
}
