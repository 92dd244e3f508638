import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { listen as listenInBrowser } from '@latchkey/examples/live-events.browser.js';
import { type LiveEvent, listen as listenInNode } from '@latchkey/examples/live-events.node.mjs';
import { eventually } from '@latchkey/testkit/eventually';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { createApplication, type Owner, signUp } from '../testing/caller.ts';

const { realtimeUrl } = inject('latchkeyInstance');
const TIMEOUT = { timeoutMs: 15_000 };

let owner: Owner;
let applicationId: string;
const stops: AbortController[] = [];
beforeAll(async () => {
  owner = await signUp();
});
beforeEach(async () => {
  applicationId = await createApplication(owner.session);
});
afterEach(() => {
  for (const stop of stops.splice(0)) stop.abort();
});

const set = async (field: string, value: string) => {
  const { status } = await owner.session.patch('/api/v1/panel/update-application-settings', { field, value }, { applicationId });
  expect(status).toBe(200);
};
const rotate = () => owner.session.patch('/api/v1/panel/update-api-keys', { type: 'socketKey' }, { applicationId });
const remove = () => owner.session.delete('/api/v1/panel/delete-application', { applicationId, code: '' });
const readKey = async (): Promise<string> => {
  const { data } = await owner.session.get('/api/v1/panel/get-applications');
  return data.find(({ id }: { id: string }) => id === applicationId).applicationApiKeys.socketKey;
};

/** Type and what matters of the data. */
const tell = ({ type, data }: LiveEvent) => `${type.replace(/^latchkey\./, '')} ${data.version ?? data.status ?? ''}`.trim();

const READY = 'connection.ready 1.0';
const CHANGES = ['application.version_changed 1.1', 'application.paused paused', 'application.resumed online'];
const change = async () => {
  await set('version', '1.1');
  await set('status', 'paused');
  await set('status', 'online');
};

describe.each([
  ['Node.js', listenInNode],
  ['browsers', listenInBrowser],
])('the example for %s, against a real service,', (name, listen) => {
  /** Listens until the test ends, the signal or the service say otherwise. */
  const start = (socketKey: string, lastEventId?: string) => {
    const stop = new AbortController();
    stops.push(stop);
    const events: LiveEvent[] = [];
    const onEvent = (event: LiveEvent) => void events.push(event);
    const from = lastEventId === undefined ? {} : { lastEventId };
    const ended = listen({ url: realtimeUrl, socketKey, onEvent, signal: stop.signal, ...from });
    return { ended, stop, events, told: () => events.map(tell) };
  };

  it('hears of every change, in order, and of the deletion, which ends it', async () => {
    const client = start(await readKey());
    await eventually(() => client.events.length === 1, TIMEOUT);
    await change();
    await eventually(() => client.events.length === 4, TIMEOUT);
    await remove();
    expect(await client.ended).toBe('deleted');
    expect(client.told()).toEqual([READY, ...CHANGES, 'application.deleted']);
    expect(client.events.slice(1).map(({ sequence }) => sequence)).toEqual(['1', '2', '3', '4']);
  });

  it('gets what it missed', async () => {
    const key = await readKey();
    const before = start(key);
    await eventually(() => before.events.length === 1, TIMEOUT);
    before.stop.abort();
    expect(await before.ended).toBe('aborted');
    await change();
    const after = start(key, before.events[0]?.data.lastSequence);
    await eventually(() => after.events.length === 3, TIMEOUT);
    expect(after.told()).toEqual(CHANGES);
  });

  it('gets the snapshot in place of an event that there never was', async () => {
    await change();
    const client = start(await readKey(), '1000');
    await eventually(() => client.events.length === 1, TIMEOUT);
    expect(client.events[0]?.data).toMatchObject({ lastSequence: '3', version: '1.1', status: 'online', resumed: false });
  });

  it('ends when the key is rotated', async () => {
    const client = start(await readKey());
    await eventually(() => client.events.length === 1, TIMEOUT);
    await rotate();
    expect(await client.ended).toBe('rotated');
  });

  it.runIf(name === 'Node.js')('ends at once with a key that is refused', async () => {
    const key = await readKey();
    await rotate();
    expect(await start(key).ended).toBe('refused');
  });
});

describe('npm run listen, against a real service,', () => {
  const MAIN = fileURLToPath(new URL('../listen-main.ts', import.meta.url));
  const run = (...args: string[]) => {
    const child = spawn(process.execPath, [MAIN, ...args, '--url', realtimeUrl], { stdio: 'pipe' });
    const said = { stdout: '', stderr: '' };
    child.stdout.on('data', (chunk: Buffer) => {
      said.stdout += chunk.toString();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      said.stderr += chunk.toString();
    });
    const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
    const stop = new AbortController();
    stop.signal.addEventListener('abort', () => child.kill('SIGKILL'));
    stops.push(stop);
    return { said, ended };
  };

  it('prints events as they arrive, until the application is deleted', async () => {
    const { said, ended } = run(await readKey());
    await eventually(() => said.stderr.startsWith('Connected to app-'), TIMEOUT);
    await change();
    await eventually(() => said.stdout.split('\n').length === 4, TIMEOUT);
    await remove();
    expect(await ended).toBe(0);
    const lines = said.stdout.trimEnd().split('\n');
    expect(lines.map((line) => line.replace(/^\S+Z {2}/, ''))).toEqual([
      '#1  latchkey.application.version_changed  {"version":"1.1","previousVersion":"1.0"}',
      '#2  latchkey.application.paused  {"status":"paused"}',
      '#3  latchkey.application.resumed  {"status":"online"}',
      '#4  latchkey.application.deleted  {}',
    ]);
  });

  it('prints frames for programs, from an event on, and ends with a key that is refused', async () => {
    await change();
    const key = await readKey();
    const { said, ended } = run(key, '--json', '--from', '1');
    await eventually(() => said.stdout.split('\n').length === 4, TIMEOUT);
    const frames = said.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as LiveEvent);
    expect(frames.map(tell)).toEqual(['connection.ready 1.1', ...CHANGES.slice(1)]);
    await rotate();
    expect(await ended).toBe(1);
    const again = run(key);
    expect([await again.ended, again.said.stderr]).toEqual([1, expect.stringMatching(/^The socket key is refused/)]);
  });
});

const CHROMIUM_NAMES = ['chromium', 'chromium-browser', 'google-chrome'];
const executablePath = (process.env.PATH ?? '')
  .split(delimiter)
  .flatMap((folder) => CHROMIUM_NAMES.map((name) => join(folder, name)))
  .find((path) => existsSync(path));
if (executablePath === undefined) process.stderr.write('The page of the examples is not tried: there is no chromium on PATH.\n');

describe.skipIf(executablePath === undefined)(
  'the page of the examples, in a browser and from a foreign origin,',
  { timeout: 60_000 },
  () => {
    let browser: Browser;
    let page: Page;
    const origin = createServer(async (request, response) => {
      const name = (request.url ?? '').slice(1);
      const types = { 'live-events.browser.html': 'text/html; charset=utf-8', 'live-events.browser.js': 'text/javascript' };
      const type = types[name as keyof typeof types];
      if (type === undefined) return void response.writeHead(404).end();
      response.setHeader('content-type', type);
      response.end(await readFile(new URL(import.meta.resolve(`@latchkey/examples/${name}`))));
    });
    beforeAll(async () => {
      await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve));
      browser = await chromium.launch({ ...(executablePath !== undefined && { executablePath }), args: ['--no-sandbox'] });
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

    const listen = async () => {
      await page.getByLabel('Socket key').fill(await readKey());
      await page.getByRole('button', { name: 'Listen' }).click();
      await eventually(async () => (await state()).startsWith('Connected to app-'), TIMEOUT);
    };
    const state = async () => (await page.getByRole('status').textContent()) ?? '';
    /** Sequences and types, newest first. */
    const rows = async () =>
      (await page.locator('tbody tr').allInnerTexts()).map((row) =>
        row
          .split('\t')
          .filter((_, i) => i === 0 || i === 2)
          .join(' '),
      );

    it('shows what happens, and the deletion', async () => {
      await listen();
      await change();
      await eventually(async () => (await rows()).length === 4, TIMEOUT);
      await remove();
      await eventually(async () => (await state()) === 'The application was deleted.', TIMEOUT);
      const types = ['deleted', 'resumed', 'paused', 'version_changed'].map((type, i) => `${4 - i} latchkey.application.${type}`);
      expect(await rows()).toEqual([...types, ' latchkey.connection.ready']);
    });

    it('comes back with what it missed when the network does', async () => {
      await listen();
      await page.context().setOffline(true);
      await change();
      await page.context().setOffline(false);
      // The browser may keep the old connection, over which the events come too; what counts is that it does not rely on that.
      await eventually(async () => /^Connected to app-\S+ Nothing was missed\.$/.test(await state()), TIMEOUT);
      await eventually(async () => (await rows()).length === 4, TIMEOUT);
    });

    it('says that the key was rotated', async () => {
      await listen();
      await rotate();
      await eventually(async () => (await state()) === 'The key was rotated: enter the new one.', TIMEOUT);
    });

    it('says that it needs a server where it is opened from a file', async () => {
      await page.goto(import.meta.resolve('@latchkey/examples/live-events.browser.html'));
      expect(await state()).toMatch(/^Browsers run this page only from a web server, /);
      expect(await page.getByRole('button', { name: 'Listen' }).isDisabled()).toBe(true);
    });

    it('wonders about the key after some failures', async () => {
      await page.getByLabel('Socket key').fill('lk_sock_00000000000000000000000000000000');
      // The delays of the page are chance.
      await page.evaluate(() => {
        Math.random = () => 0;
      });
      await page.getByRole('button', { name: 'Listen' }).click();
      await eventually(async () => /^Not connected.*Is the key still the present one/.test(await state()), TIMEOUT);
      expect(await rows()).toEqual([]);
    });
  },
);
