import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter, join } from 'node:path';
import { listen as listenInBrowser } from '@latchkey/examples/live-events.browser.js';
import { type LiveEvent, listen as listenInNode } from '@latchkey/examples/live-events.node.mjs';
import { eventually } from '@latchkey/testkit/eventually';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it, onTestFinished } from 'vitest';
import { createApplication, type Owner, signUp } from '../testing/caller.ts';
import { readSocketKey, setSetting } from '../testing/live.ts';

const { realtimeUrl } = inject('latchkeyInstance');
const TIMEOUT = { timeoutMs: 15_000 };

let owner: Owner;
let applicationId: string;
beforeAll(async () => {
  owner = await signUp();
});
beforeEach(async () => {
  applicationId = await createApplication(owner.session);
});

const rotate = () => owner.session.patch('/api/v1/panel/update-api-keys', { type: 'socketKey' }, { applicationId });
const remove = () => owner.session.delete('/api/v1/panel/delete-application', { applicationId, code: '' });
const readKey = () => readSocketKey(owner.session, applicationId);
const CHANGES = ['application.version_changed 1.1', 'application.paused paused', 'application.resumed online'];
const change = async () => {
  for (const [field, value] of [
    ['version', '1.1'],
    ['status', 'paused'],
    ['status', 'online'],
  ] as const)
    await setSetting(owner.session, applicationId, field, value);
};

describe.each([
  ['Node.js', listenInNode],
  ['browsers', listenInBrowser],
])('the example for %s', (_name, listen) => {
  const start = (socketKey: string, lastEventId?: string) => {
    const stop = new AbortController();
    onTestFinished(() => stop.abort());
    const events: LiveEvent[] = [];
    const onEvent = (event: LiveEvent) => void events.push(event);
    const from = lastEventId === undefined ? {} : { lastEventId };
    const ended = listen({ url: realtimeUrl, socketKey, onEvent, signal: stop.signal, ...from });
    const received = () =>
      events.map(({ type, data }) => `${type.replace(/^latchkey\./, '')} ${data.version ?? data.status ?? ''}`.trim());
    return { ended, stop, events, received };
  };

  it('receives every change in order, resumes with what it missed, and ends with the deletion', async () => {
    const key = await readKey();
    const before = start(key);
    await eventually(() => before.events.length === 1, TIMEOUT);
    before.stop.abort();
    expect([await before.ended, before.received()]).toEqual(['aborted', ['connection.ready 1.0']]);
    await change();
    const after = start(key, before.events[0]?.data.lastSequence);
    await eventually(() => after.events.length === 3, TIMEOUT);
    await remove();
    expect([await after.ended, after.received()]).toEqual(['deleted', [...CHANGES, 'application.deleted']]);
    expect(after.events.map(({ sequence }) => sequence)).toEqual(['1', '2', '3', '4']);
  });
});

const names = ['chromium', 'chromium-browser', 'google-chrome'];
const paths = (process.env.PATH ?? '').split(delimiter).flatMap((folder) => names.map((name) => join(folder, name)));
const executablePath = paths.find((path) => existsSync(path));

describe.skipIf(executablePath === undefined)('the page of the examples, from a foreign origin', { timeout: 60_000 }, () => {
  let browser: Browser;
  let page: Page;
  const origin = createServer(async (request, response) => {
    const name = (request.url ?? '').slice(1);
    if (!/^live-events\.browser\.(html|js)$/.test(name)) return void response.writeHead(404).end();
    response.setHeader('content-type', name.endsWith('html') ? 'text/html; charset=utf-8' : 'text/javascript');
    response.end(await readFile(new URL(import.meta.resolve(`@latchkey/examples/${name}`))));
  });
  beforeAll(async () => {
    await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve));
    browser = await chromium.launch({ executablePath: executablePath ?? '', args: ['--no-sandbox'] });
  });
  afterAll(async () => {
    await browser?.close();
    await new Promise((resolve) => origin.close(resolve));
  });
  beforeEach(async () => {
    page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${(origin.address() as AddressInfo).port}/live-events.browser.html`);
    await page.getByLabel('URL').fill(realtimeUrl);
  });
  afterEach(() => page.close());

  const listen = async (key: string) => {
    await page.getByLabel('Socket key').fill(key);
    await page.getByRole('button', { name: 'Listen' }).click();
  };
  const state = async () => (await page.getByRole('status').textContent()) ?? '';
  const reach = (expected: RegExp) => eventually(async () => expect(await state()).toMatch(expected), TIMEOUT);
  /** Sequences and types, newest first. */
  const rows = async () =>
    (await page.locator('tbody tr').allInnerTexts()).map((row) =>
      row
        .split('\t')
        .filter((_, i) => i % 2 === 0)
        .join(' '),
    );

  it('shows events, what it missed while offline, and the deletion', async () => {
    await listen(await readKey());
    await reach(/^Connected to app-/);
    await page.context().setOffline(true);
    await change();
    await page.context().setOffline(false);
    await reach(/^Connected to app-\S+ Nothing was missed\.$/);
    await eventually(async () => (await rows()).length === 4, TIMEOUT);
    await remove();
    await reach(/^The application was deleted\.$/);
    const types = ['deleted', 'resumed', 'paused', 'version_changed'].map((type, i) => `${4 - i} latchkey.application.${type}`);
    expect((await rows()).slice(0, 4)).toEqual(types);
  });

  it('reports a rotated key, one that may be wrong, and that it needs a server', async () => {
    await listen(await readKey());
    await reach(/^Connected to app-/);
    await rotate();
    await reach(/^The key was rotated: enter the new one\.$/);
    // The delays of the page are random.
    await page.evaluate(() => {
      Math.random = () => 0;
    });
    await listen('lk_sock_00000000000000000000000000000000');
    await reach(/^Not connected.*Is the key still the present one/);
    await page.goto(import.meta.resolve('@latchkey/examples/live-events.browser.html'));
    expect(await state()).toMatch(/^Browsers run this page only from a web server, /);
    expect(await page.getByRole('button', { name: 'Listen' }).isDisabled()).toBe(true);
  });
});
