import { execFile } from 'node:child_process';
import { copyFile, cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { Latchkey } from '@latchkey/client';
import { ROOT } from '@latchkey/launcher/program';
import { eventually } from '@latchkey/testkit/eventually';
import { IN_TEST_ALL, isTestAll } from '@latchkey/testkit/vitest/test-all';
import type { Page } from 'playwright-core';
import { rolldown } from 'rolldown';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { openBrowser } from '../client/browser.ts';
import { createApplication, createKey, type Owner, signUp, unique } from '../client/caller.ts';
import { IN_CHROMIUM } from '../client/chromium.ts';
import { readSocketKey, setSetting } from '../client/live.ts';
import { type PageServer, startPageServer } from '../fakes/page-server.ts';

const run = promisify(execFile);
const { baseUrl, realtimeUrl } = inject('latchkeyInstance');
const TIMEOUT = { timeoutMs: 15_000 };
/** With the oldest TypeScript that the types are for. */
const TOOLS = join(ROOT, 'packages/e2e/node_modules/.bin');

let owner: Owner;
let folder: string;
let project: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'latchkey-client-'));
  [owner, project] = await Promise.all([signUp(), installPackedClient(folder)]);
});
afterAll(() => rm(folder, { recursive: true }));

/**
 * Packs the client as it would be published, and installs it into an empty project.
 *
 * @param folder which is empty
 * @returns the folder of the project
 */
async function installPackedClient(folder: string): Promise<string> {
  const [checkout, project] = [join(folder, 'checkout'), join(folder, 'project')];
  const source = join(checkout, 'packages', 'client');
  await Promise.all([mkdir(source, { recursive: true }), mkdir(project)]);
  // A copy, as npm pack exchanges package.json for a moment.
  const isPart = (path: string) => !/\/(node_modules|dist)$/.test(path);
  await cp(join(ROOT, 'packages/client'), source, { recursive: true, filter: isPart });
  await cp(join(ROOT, 'tsconfig.json'), join(checkout, 'tsconfig.json'));
  await symlink(join(ROOT, 'node_modules'), join(checkout, 'node_modules'));
  await run('npm', ['pack', '--pack-destination', folder], { cwd: source });
  await writeFile(join(project, 'package.json'), '{ "type": "module" }');
  const tarball = join(folder, 'latchkey-client-0.1.0.tgz');
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', tarball], { cwd: project });
  return project;
}

describe('the packed client, in an empty project,', IN_TEST_ALL, () => {
  it('runs the first script of its documentation', async () => {
    const text = await readFile(join(ROOT, 'docs/client.md'), 'utf8');
    const [, script = '', output] = /^```js\n([\s\S]*?)^```\n\n```\n([\s\S]*?)^```/m.exec(text) ?? [];
    await mkdir(join(project, 'dist'));
    await writeFile(join(project, 'dist/engine.zip'), 'a release\n');
    const args = ['--input-type=module', '--eval', script.replace('http://localhost:8080', baseUrl)];
    const options = { cwd: project, env: { LATCHKEY_KEY: (await createKey(owner)).text } };
    expect((await run(process.execPath, args, options)).stdout).toBe(output);
  });

  it('has types that every way to resolve modules finds', async () => {
    await run(join(TOOLS, 'attw'), ['--profile', 'esm-only', join(folder, 'latchkey-client-0.1.0.tgz')]);
  });

  it.each([
    ['7', 'bundler', 'es2022,dom', []],
    ['7', 'nodenext', 'es2022', ['--typeRoots', join(ROOT, 'node_modules/@types'), '--types', 'node']],
    // With the types of Node.js, this compiler takes three times as long.
    ['5.4', 'nodenext', 'es2022,dom', []],
  ])('has types for strict TypeScript %s with %s and %s', async (version, resolution, lib, roots) => {
    await writeFile(
      join(project, 'use.ts'),
      `import { ConnectionError, Latchkey, LatchkeyError, type LiveEvent, type StoredFile } from '@latchkey/client';
      const latchkey = new Latchkey({ url: 'https://panel.example.com', key: 'lk_mgmt_1' });
      const first: StoredFile | undefined = (await latchkey.files.list('1', { page: 1 })).files[0];
      const online: 'online' | 'paused' = (await latchkey.applications.settings('1')).status;
      const describe = (event: LiveEvent) => event.type === 'latchkey.application.version_changed' && event.data.previousVersion;
      const isLimit = (err: unknown) => err instanceof LatchkeyError && err.code === 'rate_limit_reached';
      const retryable = (err: unknown) => err instanceof ConnectionError || isLimit(err);
      // @ts-expect-error An unknown status.
      await latchkey.applications.update('1', { status: 'gone' });
      export { describe, first, online, retryable };`,
    );
    const strict = ['--strict', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess'];
    const checked = ['--skipLibCheck', 'false', '--skipDefaultLibCheck', '--noEmit', '--pretty', 'false', 'use.ts'];
    const modules = ['--module', resolution === 'nodenext' ? 'nodenext' : 'esnext', '--moduleResolution', resolution];
    const args = [...strict, ...checked, '--target', 'es2022', '--lib', lib, ...modules, ...roots];
    const compilers = version === '7' ? join(ROOT, 'node_modules/.bin') : TOOLS;
    const { stdout } = await run(join(compilers, 'tsc'), args, { cwd: project }).catch((err) => err);
    expect(stdout).toBe('');
  });

  it('has at most 15 KiB for a browser, compressed, and no module of Node.js', async () => {
    const entry = join(project, 'page.js');
    await writeFile(entry, `export { Latchkey } from '@latchkey/client';`);
    const bundle = await rolldown({ input: entry, platform: 'browser', logLevel: 'silent' });
    const { output } = await bundle.generate({ minify: true });
    await bundle.close();
    const chunks = output.flatMap((chunk) => (chunk.type === 'chunk' ? [chunk] : []));
    const [page] = chunks.filter(({ isEntry }) => isEntry);
    const loaded = chunks.filter(({ fileName, isEntry }) => isEntry || page?.imports.includes(fileName));
    expect(chunks.flatMap(({ imports }) => imports).filter((name) => name.startsWith('node:'))).toEqual([]);
    expect(loaded.map(({ code }) => code).join()).not.toContain('WebSocket');
    expect(gzipSync(loaded.map(({ code }) => code).join('\n')).length).toBeLessThanOrEqual(15 * 1024);
  });
});

describe('the packed client, in a browser,', isTestAll ? IN_CHROMIUM : IN_TEST_ALL, () => {
  let page: Page;
  let server: PageServer;
  let applicationId: string;
  beforeAll(async () => {
    const example = 'live-events.browser.html';
    await copyFile(join(ROOT, 'examples', example), join(project, example));
    server = await startPageServer(project, baseUrl);
  });
  afterAll(() => server.stop());
  beforeEach(async () => {
    applicationId = await createApplication(owner.session);
    page = await (await openBrowser()).newPage();
    await page.goto(`${server.url}/live-events.browser.html`);
    await page.getByLabel('URL').fill(realtimeUrl);
  });
  afterEach(() => page.close());

  const listenWith = async (key: string) => {
    await page.getByLabel('Socket key').fill(key);
    await page.getByRole('button', { name: 'Listen' }).click();
  };
  const reach = (expected: RegExp) =>
    eventually(async () => expect(await page.getByRole('status').textContent()).toMatch(expected), TIMEOUT);

  it('signs up, uploads with progress and a digest, and signs out, after a reload too', async () => {
    const script = `(async () => {
      const { Latchkey } = await import('@latchkey/client');
      const latchkey = new Latchkey({ url: location.origin });
      const username = '${unique('b')}';
      await latchkey.account.signUp({ username, email: username + '@example.com', password: 'correct horse battery' });
      // As after a reload, when only the browser knows the session.
      const reloaded = new Latchkey({ url: location.origin });
      const { id } = await reloaded.applications.create({ name: 'In a browser' });
      let sent = 0;
      const file = new File([new Uint8Array(3_000_000)], 'setup.bin');
      const { byteSize } = await reloaded.files.upload(id, file, { onProgress: ({ sentBytes }) => (sent = sentBytes) });
      const again = reloaded.files.upload(id, new Blob(['x']).stream(), { name: 'setup.bin' });
      const taken = await again.catch((err) => err.code);
      await reloaded.account.signOut();
      return [byteSize, sent, taken, await latchkey.applications.list().catch((err) => err.code)];
    })()`;
    expect(await page.evaluate(script)).toEqual([3_000_000, 3_000_000, 'file_name_taken', 'api_key_invalid']);
  });

  it('shows events on the page of the examples, what it missed while offline, and the deletion', async () => {
    await listenWith(await readSocketKey(owner.session, applicationId));
    await reach(/^connected/);
    await page.context().setOffline(true);
    await setSetting(owner.session, applicationId, 'version', '1.1');
    await setSetting(owner.session, applicationId, 'status', 'paused');
    // Only a connected browser learns of a deletion: a rejected handshake has no reason.
    const reconnects = page.waitForEvent('websocket');
    await page.context().setOffline(false);
    await reconnects;
    await reach(/^connected/);
    await eventually(async () => (await page.locator('li').count()) === 3, TIMEOUT);
    await new Latchkey({ url: baseUrl, key: (await createKey(owner)).text }).applications.delete(applicationId);
    await reach(/^ended/);
    const types = ['application.deleted', 'application.paused', 'application.version_changed', 'connection.ready'];
    const shown = await page.locator('li').allInnerTexts();
    expect(shown.map((text) => text.split(' ')[0])).toEqual(types.map((type) => `latchkey.${type}`));
  });
});
