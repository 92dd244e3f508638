import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Latchkey } from '@latchkey/client';
import { eventually } from '@latchkey/testkit/eventually';
import { beforeAll, beforeEach, describe, expect, inject, it, onTestFinished } from 'vitest';
import { createKey, type Owner, signUp, unique } from '../client/caller.ts';
import { startInterruptingProxy } from '../fakes/interrupting-proxy.ts';

const { baseUrl } = inject('latchkeyInstance');

let owner: Owner;
let key: string;
let latchkey: Latchkey;
let applicationId: string;
beforeAll(async () => {
  owner = await signUp();
  key = (await createKey(owner)).text;
  latchkey = new Latchkey({ url: baseUrl, key });
});
beforeEach(async () => {
  applicationId = (await latchkey.applications.create({ name: unique('app-') })).id;
});

describe('the client', () => {
  it('does what each of its methods says', async () => {
    const browser = new Latchkey({ url: baseUrl });
    const password = 'correct horse battery staple';
    const email = `${unique('c')}@example.com`;
    const { account } = await browser.account.signUp({ username: unique('c'), email, password });
    expect((await browser.account.session()).account).toEqual(account);
    const { id } = await browser.applications.create({ name: 'Photo Editor' });
    await browser.levels.set(id, ['Basic', 'Pro']);
    await browser.applications.update(id, { version: '2.0', applicationUserRequiresLicense: true });
    await browser.applications.pause(id);
    const settings = { version: '2.0', status: 'paused', applicationUserRequiresLicense: true };
    expect([await browser.levels.get(id), await browser.applications.settings(id)]).toMatchObject([['Basic', 'Pro'], settings]);
    const page = await browser.applications.page({ search: 'photo', sort: '-updatedAt' });
    expect(page).toMatchObject({ applications: [{ id, version: '2.0', status: 'paused' }], totalPages: 1 });
    const days = await browser.applications.usage(id, { days: 1 });
    expect(days).toEqual([expect.objectContaining({ date: expect.any(String), uploads: 0 })]);
    expect(await browser.applications.liveClients(id)).toBe(0);
    const [before] = await browser.applications.list();
    await browser.keys.rotate(id, 'http');
    const [after] = await browser.applications.list();
    expect(after?.applicationApiKeys.socketKey).toBe(before?.applicationApiKeys.socketKey);
    expect(after?.applicationApiKeys.httpKey).not.toBe(before?.applicationApiKeys.httpKey);

    const key = await browser.apiKeys.create({ name: 'Build server', scopes: ['files:read'], allApplications: true });
    await browser.apiKeys.update(key.id, { name: 'Release server' });
    expect(await browser.apiKeys.requests(key.id)).toHaveLength(90);
    const { id: nextId } = await browser.apiKeys.rotate(key.id, { overlapSeconds: 60 });
    await browser.apiKeys.revoke(nextId);
    await browser.apiKeys.revoke(key.id);
    expect(await browser.apiKeys.list()).toMatchObject(
      [key.id, nextId].map((id) => ({ id, name: 'Release server', revokedAt: expect.any(String) })),
    );
    const withKey = new Latchkey({ url: baseUrl, key: key.plaintextKey });
    await expect(withKey.files.metadata(id)).rejects.toMatchObject({ code: 'api_key_revoked', status: 401 });
    const { secret } = await browser.twoFactor.setUp();
    expect(secret).toMatch(/^[A-Z2-7]+$/);
    await expect(browser.twoFactor.enable('000000')).rejects.toMatchObject({ code: 'bad_request' });
    expect(await browser.oidc.links()).toEqual([]);
    await browser.avatar.remove();
    await expect(browser.avatar.get()).rejects.toMatchObject({ code: 'not_found' });
    expect((await browser.limits.get()).createdApplicationsCount.currentValue).toBe(1);
    const actions = [];
    for await (const { action } of browser.auditLog.iterate({ applicationId: id })) actions.push(action);
    expect(actions.at(-1)).toBe('application.created');
    await browser.applications.delete(id);
    await browser.account.signOut();
    await expect(browser.account.session()).rejects.toMatchObject({ code: 'unauth' });
    await browser.account.signIn({ email, password });
    expect(await browser.applications.list()).toEqual([]);
    await browser.account.signOutEverywhere();
    await browser.account.signIn({ email, password });
    const [session, ...others] = await browser.account.sessions();
    expect([session?.current, others]).toEqual([true, []]);
    await browser.account.endSession(session?.id ?? '');
    await expect(browser.account.sessions()).rejects.toMatchObject({ code: 'unauth' });
    await browser.account.signIn({ email, password });
    await browser.account.delete({ password });
    await expect(browser.account.signIn({ email, password })).rejects.toMatchObject({ code: 'unauth' });
  });

  it('uploads paths, bytes, blobs and streams, reports progress, and lists, renames and deletes files', async () => {
    const path = join(await mkdtemp(join(tmpdir(), 'latchkey-client-')), 'setup.bin');
    onTestFinished(() => rm(join(path, '..'), { recursive: true }));
    await writeFile(path, Buffer.alloc(5_000_000, 'x'));
    const progress: number[] = [];
    const options = { onProgress: ({ sentBytes }: { sentBytes: number }) => void progress.push(sentBytes) };
    expect((await latchkey.files.upload(applicationId, path, options)).byteSize).toBe(5_000_000);
    expect([progress.length > 1, progress.at(-1)]).toEqual([true, 5_000_000]);
    const bytes = Buffer.from('bytes');
    await latchkey.files.upload(applicationId, bytes, { name: 'bytes' });
    await latchkey.files.upload(applicationId, new File([bytes], 'named'));
    await latchkey.files.upload(applicationId, new Blob([bytes]).stream(), { name: 'stream' });
    const byFetch = new Latchkey({ url: baseUrl, key: (await createKey(owner)).text, fetch });
    await byFetch.files.upload(applicationId, path, { name: 'fetch' });
    const { files, totalPages } = await latchkey.files.list(applicationId);
    expect([files.map((file) => file.displayName), totalPages]).toEqual([['fetch', 'stream', 'named', 'bytes', 'setup.bin'], 1]);
    expect(new Set(files.slice(1, 4).map((file) => file.checksum)).size).toBe(1);
    const { url } = await latchkey.files.createDownloadUrl(applicationId, files[3]?.id ?? '', { lifetimeSeconds: 30 });
    expect(await (await fetch(url)).text()).toBe('bytes');
    expect(await (await latchkey.files.download(applicationId, files[3]?.id ?? '')).text()).toBe('bytes');
    expect(await latchkey.files.isNameFree(applicationId, 'stream')).toBe(false);
    await latchkey.files.rename(applicationId, files[1]?.id ?? '', 'renamed');
    await latchkey.files.delete(applicationId, files[0]?.id ?? '');
    const found = [];
    for await (const file of latchkey.files.iterate(applicationId, { search: 'NAMED' })) found.push(file.displayName);
    expect([found, (await latchkey.files.metadata(applicationId)).totalFiles]).toEqual([['renamed', 'named'], 4]);
  });

  it('continues a large upload of a process that ended, lists unfinished ones and ends them', async () => {
    const proxy = await startInterruptingProxy(baseUrl);
    onTestFinished(proxy.stop);
    const bytes = randomBytes(25 * 1_048_576);
    // The creation and a chunk pass; the next chunk breaks off, as if the process had been killed.
    proxy.arm({ write: 3, when: 'during' });
    const killed = new Latchkey({ url: proxy.url, key, retries: 0 });
    await expect(killed.files.upload(applicationId, bytes, { name: 'large' })).rejects.toThrow();
    const unfinished = await latchkey.uploads.list();
    expect(unfinished).toMatchObject([{ applicationId, fileName: 'large', byteSize: bytes.length }]);
    expect(unfinished[0]?.byteOffset).toBeGreaterThanOrEqual(10 * 1_048_576);
    const other = latchkey.files.upload(applicationId, randomBytes(bytes.length), { name: 'large' });
    await expect(other).rejects.toMatchObject({ code: 'upload_unfinished' });
    const sent: number[] = [];
    const onProgress = ({ sentBytes }: { readonly sentBytes: number }) => sent.push(sentBytes);
    const { checksum, id: large } = await latchkey.files.upload(applicationId, bytes, { name: 'large', onProgress });
    expect(checksum).toBe(createHash('sha256').update(bytes).digest('hex'));
    expect([sent[0], sent.at(-1)]).toEqual([expect.any(Number), bytes.length]);
    expect(sent[0]).toBeGreaterThanOrEqual(10 * 1_048_576);
    expect((await latchkey.files.upload(applicationId, bytes, { name: 'large' })).checksum).toBe(checksum);
    const others = randomBytes(11 * 1_048_576);
    proxy.arm({ write: 2, when: 'before' });
    await expect(killed.files.upload(applicationId, others, { name: 'large', replace: true })).rejects.toThrow();
    await expect(latchkey.files.upload(applicationId, others, { name: 'large' })).rejects.toMatchObject({
      code: 'file_name_taken',
    });
    for (const content of [others, Buffer.from('small')]) {
      const replaced = await latchkey.files.upload(applicationId, content, { name: 'large', replace: true });
      expect(replaced).toMatchObject({ id: large, checksum: createHash('sha256').update(content).digest('hex') });
    }
    proxy.arm({ write: 2, when: 'before' });
    await expect(killed.files.upload(applicationId, bytes, { name: 'again' })).rejects.toThrow();
    const [{ id } = { id: '' }] = await latchkey.uploads.list();
    await latchkey.uploads.end(id);
    expect(await latchkey.uploads.list()).toEqual([]);
  });

  it('goes on with a large upload by itself where a connection breaks', async () => {
    const proxy = await startInterruptingProxy(baseUrl);
    onTestFinished(proxy.stop);
    const bytes = randomBytes(12 * 1_048_576);
    proxy.arm({ write: 2, when: 'during' });
    const upload = new Latchkey({ url: proxy.url, key }).files.upload(applicationId, bytes, { name: 'broken' });
    await eventually(async () => proxy.hasInterrupted());
    proxy.arm(undefined);
    expect(await upload).toMatchObject({ byteSize: bytes.length });
  });

  it('stores nothing of an aborted upload, and sends no byte of one that is rejected', async () => {
    const stop = new AbortController();
    const forever = async function* () {
      for (;;) yield new Uint8Array(65_536);
    };
    const onProgress = () => stop.abort(new Error('enough'));
    const upload = latchkey.files.upload(applicationId, forever(), { name: 'forever', signal: stop.signal, onProgress });
    await expect(upload).rejects.toThrow('enough');
    await latchkey.files.upload(applicationId, Buffer.from('a'), { name: 'taken' });
    let sent = 0;
    const again = latchkey.files.upload(applicationId, new Uint8Array(100_000), { name: 'taken', onProgress: () => (sent += 1) });
    await expect(again).rejects.toMatchObject({ code: 'file_name_taken', status: 409 });
    expect([sent, (await latchkey.files.metadata(applicationId)).totalFiles]).toEqual([0, 1]);
  });
});
