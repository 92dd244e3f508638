import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '@latchkey/testkit/eventually';
import type { Page } from 'playwright-core';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { button, checkAccessibility, checkWidth, DESK, dialog, PHONE, useBrowser } from '../client/browser.ts';
import { createApplication, createKey, signUp, unique } from '../client/caller.ts';
import { IN_CHROMIUM } from '../client/chromium.ts';
import { listFiles, MIB, upload } from '../client/files.ts';
import { LiveClient, readSocketKey, setSetting } from '../client/live.ts';
import { uploadHead } from '../client/routes.ts';

const file = (name: string, byteSize: number) => ({
  name,
  mimeType: 'application/octet-stream',
  buffer: Buffer.alloc(byteSize, name),
});

async function download(page: Page, name: string): Promise<string> {
  const [started] = await Promise.all([page.waitForEvent('download'), button(page, name).click()]);
  return readFile(await started.path(), 'utf8');
}

describe('further pages of the dashboard', IN_CHROMIUM, () => {
  const open = useBrowser();

  it('reads the session and the list once each, while the script of the first page loads', async () => {
    const owner = await signUp();
    await createApplication(owner.session, 'Read early');
    const page = await open('/applications', { owner });
    await page.getByText('Read early').waitFor();
    const resources = await page.evaluate(
      `performance.getEntriesByType('resource').map(({ name, initiatorType }) => initiatorType + new URL(name).pathname)`,
    );
    const reads = (resources as string[]).filter((resource) => resource.includes('/api/'));
    expect(reads.slice(0, 2).sort()).toEqual(['link/api/v1/auth/session', 'link/api/v1/panel/list-applications']);
    // The script uses their responses: it reads the session no second time.
    expect(reads.filter((resource) => resource.endsWith('/session'))).toHaveLength(1);
  });

  it('trusts an issuer by a template, shows the configuration of a job, and stops trusting it', async () => {
    const owner = await signUp();
    const page = await open('/api-keys', { owner });
    await page.getByRole('link', { name: 'Trusted issuers' }).click();
    await page.getByText('Let CI jobs work without a stored key').waitFor();
    await button(page, 'Trust an issuer').first().click();
    await dialog(page).getByRole('button', { name: 'Trust issuer' }).click();
    await page.getByText('Enter it.').waitFor();
    for (const template of ['GitLab', 'Kubernetes', 'Another issuer', 'GitHub Actions']) {
      await page.getByLabel('Where the jobs run').selectOption(template);
      await checkAccessibility(page);
    }
    await page.getByLabel('Repository').fill('acme/editor');
    await dialog(page).getByRole('button', { name: 'Trust issuer' }).click();
    await page.getByText('Set up jobs of GitHub Actions').waitFor();
    const { data } = await owner.session.get('/api/v1/panel/trusted-issuers');
    expect(data).toMatchObject([
      {
        issuer: 'https://token.actions.githubusercontent.com',
        audience: owner.session.baseUrl,
        claims: { repository: 'acme/editor', environment: 'production' },
        lifetimeSeconds: 600,
      },
    ]);
    expect(await page.locator('pre').textContent()).toContain(`LATCHKEY_TRUSTED_ISSUER: ${data[0].id}`);
    await checkAccessibility(page);
    await button(page, 'Done').click();
    await checkWidth(page);
    await button(page, 'Stop trusting GitHub Actions').click();
    await button(page, 'Stop trusting').click();
    await page.getByText('Let CI jobs work without a stored key').waitFor();
    expect((await owner.session.get('/api/v1/panel/trusted-issuers')).data).toEqual([]);
    // Another tab trusts an issuer.
    const { name, issuer, audience, claims, scopes, allApplications, lifetimeSeconds } = data[0];
    const body = { name, issuer, audience, claims, scopes, allApplications, lifetimeSeconds };
    await owner.session.post('/api/v1/panel/trusted-issuers', body);
    await page.getByText('repository=acme/editor').waitFor();
  });

  it('shows what changes elsewhere', async () => {
    const owner = await signUp();
    const applicationId = await createApplication(owner.session, 'Difference Engine');
    const { api } = await createKey(owner);
    let streaming: Promise<unknown> | undefined;
    const prepare = async (page: Page) => {
      streaming = page.waitForResponse((response) => response.url().endsWith('/auth/changes'));
    };
    const page = await open(`/applications/${applicationId}/files`, { owner, prepare });
    await streaming;
    await button(page, 'Pause').waitFor();
    await setSetting(api, applicationId, 'status', 'paused');
    await button(page, 'Resume').waitFor();
    await api.post('/api/v1/panel/uploads', null, {}, { headers: uploadHead(applicationId, 'unfinished.bin', 3) });
    await button(page, 'End unfinished.bin').waitFor();
    // More changes come while a slow network reads.
    await page.route('**/get-files-table?*', async (route) => {
      await setSetting(api, applicationId, 'version', unique());
      await delay(2_000);
      await route.continue().catch(() => undefined);
    });
    await upload(api, applicationId, 'elsewhere.txt');
    await page.getByRole('row', { name: /elsewhere\.txt/ }).waitFor();
    await page.unrouteAll({ behavior: 'wait' });
    // The page reads nothing more of a deleted application: a 404 would be an error on the console.
    await owner.session.delete('/api/v1/panel/delete-application', { applicationId, code: '' });
    await page.getByText('There is no such application').waitFor();
  });

  it('shows usage by day as bars and as a table, and live clients without polling', async () => {
    const owner = await signUp();
    const applicationId = await createApplication(owner.session, 'Difference Engine');
    const none = { events: 0, downloads: 0, uploads: 0, clientsMax: 0 };
    const days = [none, { ...none, downloads: 3, clientsMax: 2 }, { ...none, downloads: 6 }];
    const data = days.map((counts, i) => ({ date: `2026-05-1${i}`, ...counts }));
    let reads = 0;
    const prepare = async (page: Page) => {
      await page.addInitScript('globalThis.setInterval = () => 0');
      await page.route('**/get-usage?*', (route) => {
        reads += 1;
        return route.fulfill({ json: { success: true, message: '', data } });
      });
    };
    const page = await open(`/applications/${applicationId}`, { owner, prepare });
    await page.getByText('9 in 3 days').waitFor();
    await page.getByText('0 in 3 days').waitFor();
    const showCount = (count: string) =>
      page.getByText('Live clients now').locator('..').getByText(count, { exact: true }).waitFor();
    await showCount('0');
    const bars = page.locator('figure svg rect:last-child');
    expect(await bars.evaluateAll((all) => all.map((bar) => bar.getAttribute('height')))).toEqual(['0', '0.5', '1']);
    // A day without a bar shows its count too.
    await page.locator('figure svg g').first().hover();
    expect(await page.locator('figure svg title').first().textContent()).toBe('May 10, 2026: 0');
    await page.getByText('Show as a table').click();
    await page.getByRole('row', { name: 'May 11, 2026 3 0 0 2' }).waitFor();
    expect(await page.getByRole('table', { name: 'Usage by day' }).getByRole('row').count()).toBe(3);
    await checkAccessibility(page);
    await checkWidth(page);
    const { ws } = new LiveClient(inject('latchkeyInstance').realtimeUrl, await readSocketKey(owner.session, applicationId));
    onTestFinished(() => ws.terminate());
    await showCount('1');
    ws.close();
    await showCount('0');
    // Changes, here and elsewhere, read no counts again.
    const changed = page.waitForResponse('**/update-application-settings?*');
    await page.getByRole('switch').first().click();
    await changed;
    await setSetting(owner.session, applicationId, 'version', '1.4.2');
    await page.getByText('1.4.2', { exact: true }).waitFor();
    expect(reads).toBe(1);
  });

  it('creates an API key that works, shows it once, changes and revokes it', async () => {
    const owner = await signUp();
    const applicationId = await createApplication(owner.session, '<b>Difference</b> Engine');
    const page = await open('/api-keys', { owner });
    await page.getByText('Let programs work for you').waitFor();
    await button(page, 'Create API key').first().click();
    await page.getByLabel('Name').fill('Release pipeline');
    await page.keyboard.press('Enter');
    await page.getByText('Choose at least one.').waitFor();
    await page.getByLabel('Read files').press('Space');
    await page.getByLabel('Chosen applications', { exact: true }).check();
    await page.getByLabel('<b>Difference</b> Engine').check();
    await checkAccessibility(page);
    await dialog(page).getByRole('button', { name: 'Create API key' }).click();
    // The key appears although the dialog is closed before the response.
    await page.keyboard.press('Escape');
    await page.getByText('The key is shown this once').waitFor();
    await page.keyboard.press('Escape');
    await button(page, 'Reveal API key').click();
    const text = (await page.getByText(/^lk_mgmt_\w{16}_\w{48}$/).textContent()) ?? '';
    await checkAccessibility(page);
    const metadata = () =>
      owner.session
        .with({ cookie: '', 'x-csrf-token': '', authorization: `Bearer ${text}` })
        .get('/api/v1/panel/get-files-metadata', { applicationId });
    expect((await metadata()).status).toBe(200);
    await button(page, 'I have stored the key').click();
    await dialog(page).waitFor({ state: 'detached' });
    expect(await page.content()).not.toContain(text.slice(-20));

    await page.getByRole('link', { name: 'Release pipeline' }).click();
    await dialog(page)
      .getByText(/^\d+ in 90 days$/)
      .waitFor();
    await page.getByLabel('Name').fill('Nightly <i>backup</i>');
    await page.getByLabel('Upload files').check();
    await button(page, 'Save changes').click();
    await page.getByRole('row', { name: /Nightly <i>backup<\/i>.*Read files, upload files/ }).waitFor();
    await button(page, 'Revoke Nightly <i>backup</i>').click();
    await button(page, 'Revoke API key').click();
    await page.getByText('No active API key').waitFor();
    expect((await metadata()).status).toBe(401);
    await page.getByLabel('Show 1 revoked or expired').check();
    await page.getByText('Revoked', { exact: true }).waitFor();
  });

  it('uploads many files with hostile names, and retries one whose upload was cut', async () => {
    const owner = await signUp();
    const applicationId = await createApplication(owner.session);
    const page = await open(`/applications/${applicationId}/files`, { owner, statuses: [0, 409] });
    await page.getByText('No files yet').waitFor();
    const names = ['engine-1.4.2.zip', '<img src=x onerror=alert(1)>.png', `${'W'.repeat(200)}.bin`, 'مرحبا.pdf'];
    await page.getByLabel('Files to upload').setInputFiles(names.map((name) => file(name, 70_000)));
    await page.getByText('3 need another name · 1 uploaded').waitFor();
    await checkAccessibility(page);
    await page.getByLabel('Name for مرحبا.pdf').fill('engine-1.4.2.zip');
    await page.getByText('A file of this application has this name.').waitFor();
    await page.getByLabel('Name for مرحبا.pdf').fill('guide.pdf');
    await page.getByText('This name is free.').last().waitFor();
    await page.keyboard.press('Enter');
    await page.getByText('2 need another name · 2 uploaded').waitFor();
    await button(page, 'Accept all suggested names').click();
    await page.getByText('4 uploaded').waitFor();
    await button(page, 'Clear finished').click();

    await page.route('**/upload-file?*', (route) => route.abort(), { times: 1 });
    await page.getByLabel('Files to upload').setInputFiles([file('empty.txt', 0), file('cut.bin', 3_000_000)]);
    await page.getByText('empty.txt is empty: files have at least 1 byte.').waitFor();
    expect(await button(page, 'Retry empty.txt').count()).toBe(0);
    await button(page, 'Remove empty.txt from the list').click();
    await page.getByText('Latchkey is unreachable').waitFor();
    await button(page, 'Retry cut.bin').click();
    await page.getByText('1 uploaded').waitFor();
    const stored = await listFiles(owner.session, applicationId);
    expect(stored.map(({ displayName }) => displayName)).toEqual([
      'cut.bin',
      `${'W'.repeat(12)}.bin`,
      'img-src-x-o.png',
      'guide.pdf',
      'engine-1.4.2.zip',
    ]);
    expect(stored[0]?.byteSize).toBe(3_000_000);

    await button(page, 'Clear finished').click();
    await page.getByLabel('Files to upload').setInputFiles([file('cut.bin', 5), file('guide.pdf', 5)]);
    await page.getByText('2 exist already').waitFor();
    await checkAccessibility(page);
    for (const width of [320, 640, 720, DESK.width]) {
      await page.setViewportSize({ ...DESK, width });
      await checkWidth(page);
    }
    await button(page, 'Replace cut.bin').click();
    await page.getByText('Replaced, checksum verified').waitFor();
    await button(page, 'Keep both of guide.pdf').click();
    await page.getByText('2 uploaded').waitFor();
    const after = await listFiles(owner.session, applicationId);
    // A file that is replaced in its first second has a time of the next one, for Last-Modified.
    expect(after.find(({ id }) => id === stored[0]?.id)).toMatchObject({ displayName: 'cut.bin', byteSize: 5 });
    expect(after.map(({ displayName }) => displayName)).toContain('guide-2.pdf');
    expect(after).toHaveLength(stored.length + 1);
  });

  it('continues an upload that another page began, also after its connection was cut, and ends another', async () => {
    const owner = await signUp();
    const applicationId = await createApplication(owner.session);
    const large = file('large.bin', 11 * MIB);
    const begin = async (name: string, sha256?: string) => {
      const head = uploadHead(applicationId, name, large.buffer.length, sha256 ? { sha256 } : {});
      const headers = { ...head, 'content-type': 'application/offset+octet-stream' };
      await owner.session.post('/api/v1/panel/uploads', large.buffer.subarray(0, 2 * MIB), {}, { headers });
    };
    await begin('large.bin', hash('sha256', large.buffer));
    await begin('other.bin');
    const page = await open(`/applications/${applicationId}/files`, { owner, statuses: [0, 409] });
    await page.getByText('2.0 MiB of 11.0 MiB stored').first().waitFor();
    await page.getByText('Continue it with the program that began it').waitFor();
    await checkAccessibility(page);
    await page.setViewportSize({ width: 320, height: 700 });
    await checkWidth(page);
    await page.setViewportSize(DESK);
    await page.getByLabel('File of large.bin').setInputFiles([file('small.bin', 5)]);
    await page.getByRole('alert').getByText('This is another file').waitFor();
    await page.route('**/uploads/*', (route) => (route.request().method() === 'PATCH' ? route.abort() : route.fallback()), {
      times: 2,
    });
    await page.getByLabel('File of large.bin').setInputFiles([large]);
    await page.getByText('1 uploaded').waitFor();
    expect((await listFiles(owner.session, applicationId))[0]?.checksum).toBe(hash('sha256', large.buffer));
    await button(page, 'End other.bin').click();
    await button(page, 'End upload').click();
    await page.getByText('Unfinished uploads').waitFor({ state: 'detached' });
    expect((await owner.session.get('/api/v1/panel/uploads')).data).toEqual([]);
  });

  it('searches, pages, renames and deletes files by keyboard, on a phone too', async () => {
    const owner = await signUp();
    const applicationId = await createApplication(owner.session);
    for (let i = 1; i <= 12; i += 1) await upload(owner.session, applicationId, `setup-${i}.exe`);
    const page = await open(`/applications/${applicationId}/files`, { owner, statuses: [409] });
    await page.getByText('Page 1 of 2').waitFor();
    await page.getByText('12 of 100', { exact: false }).first().waitFor();
    await button(page, 'Next').press('Enter');
    await page.getByText('Page 2 of 2').waitFor();
    await button(page, 'Rename setup-1.exe').press('Enter');
    await page.keyboard.type('setup-2.exe');
    await page.getByText('A file of this application has this name.').waitFor();
    await checkAccessibility(page);
    await page.getByLabel('New name of setup-1.exe').fill('first.exe');
    await page.keyboard.press('Enter');
    await page.getByText('File renamed').waitFor();
    await page.getByLabel('Search files').fill('first');
    await button(page, 'Delete first.exe').waitFor();
    await page.waitForURL('**/files?search=first');
    await page.setViewportSize(PHONE);
    await checkWidth(page);
    // Cards without buttons to sort have no row of headings.
    await expect.poll(() => page.getByRole('row').count()).toBe(1);
    await button(page, 'Delete first.exe').press('Enter');
    await button(page, 'Delete file').press('Enter');
    await page.getByText('No file matches').waitFor();
    await button(page, 'Clear search').press('Enter');
    await page.getByText('Page 1 of 2').waitFor();
    expect(await listFiles(owner.session, applicationId)).toHaveLength(11);
    await page.setViewportSize({ ...PHONE, width: 320 });
    await page.goto(`/applications/${applicationId}/live`);
    await eventually(async () => {
      const tab = await page.getByRole('link', { name: 'Live' }).boundingBox();
      expect(tab && tab.x + tab.width).toBeLessThanOrEqual(320);
    });
  });

  it('drafts a release of uploaded files, publishes, rolls out and yanks it', async () => {
    const owner = await signUp();
    const { session: api } = owner;
    const applicationId = await createApplication(api);
    await upload(api, applicationId, 'acme-1.4.0.exe');
    const page = await open(`/applications/${applicationId}`, { owner, statuses: [400] });
    await page.getByRole('link', { name: 'Releases', exact: true }).click();
    await page.getByText('No releases yet').waitFor();
    await checkAccessibility(page, { withColors: true });
    await button(page, 'Draft a release').press('Enter');
    await page.getByLabel('Version').fill('1.4');
    await page.getByLabel('Channel').last().fill('beta');
    await page.getByLabel('Notes for users').fill('<b>Faster</b> start');
    await page.getByLabel('Search files').fill('acme');
    await button(page, 'Add acme-1.4.0.exe').click();
    expect(await page.getByLabel('Platform').inputValue()).toBe('windows');
    await page.getByLabel('Name for users').fill('Acme Setup.exe');
    await button(page, 'Save draft').click();
    await page.getByText('Must be a Semantic Version such as', { exact: false }).waitFor();
    await checkAccessibility(page);
    await page.setViewportSize({ width: 320, height: 700 });
    await checkWidth(page);
    await page.setViewportSize(DESK);
    await page.getByLabel('Version').fill('1.4.0');
    await button(page, 'Save draft').click();
    await page.getByRole('row', { name: /1\.4\.0.*beta.*Draft/ }).waitFor();

    await page.getByRole('link', { name: '1.4.0' }).click();
    await page.getByLabel('Notes for users').fill('Faster start');
    const releases = async () => (await api.get('/api/v1/panel/releases', { applicationId })).data;
    const [
      {
        id,
        artifacts: [artifact],
      },
    ] = await releases();
    const isRead = page.waitForResponse('**/panel/releases?*');
    // CI changes what the person does not.
    await api.patch(`/api/v1/panel/releases/${id}`, { artifacts: [{ ...artifact, arch: 'aarch64' }] });
    await isRead;
    await button(page, 'Save draft').click();
    await dialog(page).waitFor({ state: 'detached' });
    const [draft] = await releases();
    expect(draft).toMatchObject({ version: '1.4.0', channel: 'beta', notes: 'Faster start', status: 'draft' });
    expect(draft.artifacts).toMatchObject([{ name: 'Acme Setup.exe', platform: 'windows', arch: 'aarch64', kind: 'exe' }]);

    await button(page, 'Publish 1.4.0 of beta').click();
    await page.getByLabel('Share of the clients').fill('');
    await button(page, 'Publish release').click();
    await dialog(page).locator('[aria-invalid="true"]').waitFor();
    await page.getByLabel('Share of the clients').fill('10');
    await button(page, 'Publish release').click();
    await page.getByRole('row', { name: /1\.4\.0.*Published.*10 %/ }).waitFor();
    await button(page, 'Roll out 1.4.0 of beta').click();
    await page.getByLabel('Share of the clients').fill('50');
    await button(page, 'Roll out release').click();
    await page.getByRole('row', { name: /1\.4\.0.*Published.*50 %/ }).waitFor();
    await page.getByRole('link', { name: '1.4.0' }).click();
    await page.getByRole('row', { name: /Acme Setup\.exe.*windows aarch64 exe.*None/ }).waitFor();
    await checkAccessibility(page);
    await page.keyboard.press('Escape');
    await button(page, 'Yank 1.4.0 of beta').click();
    await page.getByLabel('Reason').fill('It crashes.');
    await checkAccessibility(page);
    await button(page, 'Yank release').click();
    await page.getByRole('row', { name: /1\.4\.0.*Yanked/ }).waitFor();
    expect(await releases()).toMatchObject([{ status: 'yanked', rolloutPercent: 50 }]);
    await page.setViewportSize({ width: 320, height: 700 });
    await checkWidth(page);
  });

  it('shows the feeds of a channel, and pins signing keys', async () => {
    const owner = await signUp();
    const applicationId = await createApplication(owner.session);
    await owner.session.post('/api/v1/panel/releases', { version: '1.0.0', channel: 'beta' }, { applicationId });
    const page = await open(`/applications/${applicationId}/releases`, { owner });
    await page.getByRole('link', { name: '1.0.0' }).waitFor();
    await page.getByLabel('Channel').selectOption('beta');
    const feed = `${owner.session.baseUrl}/api/v1/updates/${applicationId}/beta`;
    expect(await page.locator('pre').allTextContents()).toEqual([
      `${feed}/tauri/{{target}}/{{arch}}/{{current_version}}`,
      feed,
      `${feed}/appcast.xml`,
      `${feed}/latest.json`,
    ]);
    const settings = async () => (await owner.session.get('/api/v1/panel/release-settings', { applicationId })).data;
    await page.getByRole('switch', { name: 'Public updates' }).click();
    await expect.poll(settings).toEqual({ publicUpdates: true, signingKeys: [] });
    await page.getByLabel('Public key').fill('no key');
    await button(page, 'Add key').click();
    await page.getByText('It must be a minisign public key', { exact: false }).waitFor();
    const key = 'RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3';
    await page.getByLabel('Public key').fill(`untrusted comment: minisign public key ${key}`);
    await button(page, 'Add key').click();
    await button(page, `Remove ${key}`).waitFor();
    await checkAccessibility(page);
    expect((await settings()).signingKeys).toEqual([key]);
    await button(page, `Remove ${key}`).click();
    await button(page, 'Remove key').click();
    await button(page, `Remove ${key}`).waitFor({ state: 'detached' });
    await expect.poll(settings).toEqual({ publicUpdates: true, signingKeys: [] });
    await page.getByLabel('Public key').fill('typed');
    await owner.session.patch('/api/v1/panel/release-settings', { signingKeys: [key] }, { applicationId });
    await button(page, `Remove ${key}`).waitFor();
    expect(await page.getByLabel('Public key').inputValue()).toBe('typed');
    await button(page, 'Delete 1.0.0 of beta').click();
    await button(page, 'Delete release').click();
    await page.getByText('No releases yet').waitFor();
  });

  it('filters the audit log in the URL, shows older entries, and exports all of them', async () => {
    const owner = await signUp();
    const applicationId = await createApplication(owner.session, '=HYPERLINK("x")');
    const { id } = await createKey(owner, { name: '@SUM(1+1) <b>key</b>' });
    for (let i = 0; i < 30; i += 1) {
      await setSetting(owner.session, applicationId, 'status', i % 2 === 0 ? 'paused' : 'online');
      await owner.session.patch(`/api/v1/panel/api-keys/${id}`, { name: `Key ${i}` });
    }
    const page = await open('/audit-log', { owner });
    await page.locator('summary').nth(49).waitFor();
    await button(page, 'Show older entries').press('Enter');
    await page.getByText('Account created').last().waitFor();
    await page.locator('summary', { hasText: 'API key created @SUM(1+1) <b>key</b>' }).press('Enter');
    await page.getByText('All applications', { exact: true }).last().waitFor();
    await checkAccessibility(page);
    const csv = await download(page, 'Export CSV');
    expect(csv.split('\r\n')).toHaveLength(65);
    expect(csv).not.toMatch(/(^|,)"?[=+\-@]/m);
    expect(JSON.parse(await download(page, 'Export JSON'))).toHaveLength(63);
    await page.locator('main').press('/');
    await page.keyboard.type('key 7');
    await expect.poll(() => page.locator('summary').count()).toBe(1);
    expect(await page.locator('summary').textContent()).toContain('API key changed Key 7');
    await page.getByLabel('Action').selectOption('API key created');
    await expect.poll(() => page.locator('summary').count()).toBe(1);
    expect(new URL(page.url()).search).toBe('?action=api_key.created');
    await page.getByLabel('Application', { exact: true }).selectOption('=HYPERLINK("x")');
    await expect.poll(() => page.locator('summary').count()).toBe(31);
    await page.goBack();
    await expect.poll(() => page.locator('summary').count()).toBe(1);
    await page.setViewportSize(PHONE);
    await checkWidth(page);
  });
});
