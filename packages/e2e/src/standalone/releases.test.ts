import { execFileSync } from 'node:child_process';
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '@latchkey/cli/testing/run';
import { findRustProgram } from '@latchkey/testkit/process/rust-program';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Answer, Api } from '../client/api.ts';
import { readAuditLog } from '../client/audit-log.ts';
import { createApplication, createKey, type Owner, signUp } from '../client/caller.ts';
import { deleteFile, outcome, renameFile, upload } from '../client/files.ts';

const RELEASES = '/api/v1/panel/releases';
const SETTINGS = '/api/v1/panel/release-settings';

let owner: Owner;
let api: Api;
beforeAll(async () => {
  owner = await signUp();
  api = owner.session;
});

interface Artifact {
  readonly fileId: string;
  readonly name: string;
  readonly platform: string;
  readonly arch: string;
  readonly kind: string;
  readonly signature?: string;
}

const artifact = (fileId: string, more: Partial<Artifact> = {}): Artifact => {
  return { fileId, name: 'Acme Setup.exe', platform: 'windows', arch: 'x64', kind: 'installer', ...more };
};

async function createRelease(applicationId: string, body: object): Promise<Answer> {
  return api.post(RELEASES, body, { applicationId });
}

const act = (id: string, action: string, body: object | null = null) => api.post(`${RELEASES}/${id}/${action}`, body);

/** Creates and publishes a release, and answers its id. */
async function publish(applicationId: string, body: object): Promise<string> {
  const { data } = await createRelease(applicationId, body);
  expect(outcome(await act(data.id, 'publish'))).toBe('200');
  return data.id;
}

async function httpKeyOf(applicationId: string): Promise<string> {
  const { data } = await api.get('/api/v1/panel/get-applications');
  return data.find(({ id }: { id: string }) => id === applicationId).applicationApiKeys.httpKey;
}

async function readFeed(applicationId: string, path: string, { key, ...headers }: Record<string, string> = {}) {
  const url = `${api.baseUrl}/api/v1/updates/${applicationId}/${path}`;
  const response = await fetch(url, { headers: { ...(key && { authorization: `Bearer ${key}` }), ...headers } });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** An application with its HTTP key and one file. */
async function prepare(content = 'the bytes of a setup') {
  const id = await createApplication(api);
  return { id, key: await httpKeyOf(id), fileId: (await upload(api, id, 'setup.exe', content)).data.id, content };
}

describe('releases', () => {
  it('go from draft to published to yanked, and stable sets the version of the application', async () => {
    const { id, fileId } = await prepare();
    const { data: draft } = await createRelease(id, { version: '1.4.0', artifacts: [artifact(fileId)] });
    expect(draft).toEqual({
      ...{ id: draft.id, version: '1.4.0', channel: 'stable', notes: '', status: 'draft', publishedAt: null },
      ...{ rolloutPercent: 100, artifacts: [artifact(fileId)] },
    });
    const changed = await api.patch(`${RELEASES}/${draft.id}`, { notes: 'Faster.' });
    expect(changed.data).toEqual({ ...draft, notes: 'Faster.' });
    const published = await act(draft.id, 'publish', { rolloutPercent: 50 });
    expect(published.data).toMatchObject({ status: 'published', rolloutPercent: 50, publishedAt: expect.any(String) });
    expect((await api.get('/api/v1/panel/get-application-settings', { applicationId: id })).data.version).toBe('1.4.0');
    expect((await act(draft.id, 'rollout', { rolloutPercent: 100 })).data.rolloutPercent).toBe(100);
    expect(outcome(await act(draft.id, 'publish'))).toBe('400 bad_request');
    expect(outcome(await api.patch(`${RELEASES}/${draft.id}`, { notes: 'x' }))).toBe('400 bad_request');
    expect(outcome(await api.delete(`${RELEASES}/${draft.id}`))).toBe('400 bad_request');
    expect(outcome(await act(draft.id, 'yank', { reason: 'x'.repeat(501) }))).toBe('400 VALIDATION_ERROR');
    expect((await act(draft.id, 'yank', { reason: 'It crashes.' })).data.status).toBe('yanked');
    const [yank] = await readAuditLog(api, 1, { action: 'release.yanked' });
    expect(yank?.changes).toMatchObject({ version: '1.4.0', reason: 'It crashes.' });
    expect(outcome(await api.get(`${RELEASES}/${draft.id}`, { applicationId: '' }))).toBe('404 not_found');
    expect(outcome(await act(draft.id, 'rollout', { rolloutPercent: 1 }))).toBe('400 bad_request');
    expect((await api.get(RELEASES, { applicationId: id })).data).toHaveLength(1);
    const { data: other } = await createRelease(id, { version: '1.5.0' });
    const deletion = { headers: { 'idempotency-key': 'deletion' } };
    for (let n = 0; n < 2; n += 1) expect(outcome(await api.delete(`${RELEASES}/${other.id}`, null, deletion))).toBe('200');
    expect(outcome(await api.delete(`${RELEASES}/${other.id}`))).toBe('404 not_found');
    expect(outcome(await api.get(`${RELEASES}/${other.id}`))).toBe('404 not_found');
  });

  it('of other channels leave the version alone', async () => {
    const { id, key } = await prepare();
    await publish(id, { version: '9.0.0-beta.1', channel: 'beta' });
    expect((await api.get('/api/v1/panel/get-application-settings', { applicationId: id })).data.version).toBe('1.0');
    // Without artifacts, the feed has the version alone.
    const feed = JSON.parse((await readFeed(id, 'beta/latest.json', { key })).text);
    expect(feed).toMatchObject({ version: '9.0.0-beta.1', artifacts: [] });
  });

  it.each([
    ['a version that is not SemVer', { version: '1.4' }],
    ['a channel in upper case', { version: '1.4.0', channel: 'Beta' }],
    ['a share over 100', { version: '1.4.0', rolloutPercent: 101 }],
    ['two artifacts of a kind', { version: '1.4.0', artifacts: [artifact('x'), artifact('y')] }],
    ['an unknown property', { version: '1.4.0', status: 'published' }],
  ])('reject %s', async (_what, body) => {
    const { id } = await prepare();
    expect(outcome(await createRelease(id, body))).toBe('400 VALIDATION_ERROR');
  });

  it('reject a taken version, a lower one, and a file of another application', async () => {
    const { id, fileId } = await prepare();
    const other = await prepare();
    await publish(id, { version: '2.0.0', artifacts: [artifact(fileId)] });
    expect(outcome(await createRelease(id, { version: '2.0.0' }))).toBe('409 release_exists');
    const lower = await createRelease(id, { version: '1.9.9' });
    expect(outcome(await act(lower.data.id, 'publish'))).toBe('400 bad_request');
    expect(outcome(await createRelease(id, { version: '3.0.0', artifacts: [artifact(other.fileId)] }))).toBe('404 not_found');
  });

  it('need the scope, and the application of the key', async () => {
    const { id } = await prepare();
    const other = await createApplication(api);
    const { data } = await createRelease(id, { version: '1.0.0' });
    const reader = (await createKey(owner, { scopes: ['files:read'] })).api;
    expect(outcome(await reader.get(`${RELEASES}/${data.id}`))).toBe('200');
    expect(outcome(await reader.post(`${RELEASES}/${data.id}/publish`))).toBe('403 insufficient_scope');
    const restricted = (await createKey(owner, { applicationIds: [other] })).api;
    expect(outcome(await restricted.post(`${RELEASES}/${data.id}/publish`))).toBe('403 application_forbidden');
    const stranger = (await signUp()).session;
    expect(outcome(await stranger.post(`${RELEASES}/${data.id}/publish`))).toBe('404 not_found');
  });

  it('hold their files while they are published', async () => {
    const { id, fileId } = await prepare();
    const release = await publish(id, { version: '1.0.0', artifacts: [artifact(fileId)] });
    expect(outcome(await deleteFile(api, id, fileId))).toBe('409 file_in_use');
    expect(outcome(await renameFile(api, id, fileId, 'other.exe'))).toBe('409 file_in_use');
    await act(release, 'yank');
    expect(outcome(await renameFile(api, id, fileId, 'other.exe'))).toBe('200');
    expect(outcome(await deleteFile(api, id, fileId))).toBe('200');
  });
});

describe('feeds', () => {
  it('need the HTTP key of the application, unless its updates are public', async () => {
    const { id, key, fileId } = await prepare();
    const other = await prepare();
    await publish(id, { version: '1.4.0', artifacts: [artifact(fileId)] });
    expect((await readFeed(id, 'stable/latest.json', { key })).status).toBe(200);
    expect((await readFeed(id, 'stable/latest.json')).status).toBe(401);
    expect((await readFeed(id, 'stable/latest.json', { key: `${key.slice(0, -1)}!` })).status).toBe(401);
    expect((await readFeed(id, 'stable/latest.json', { key: other.key })).status).toBe(404);
    expect((await readFeed(other.id, 'stable/latest.json', { key })).status).toBe(404);
    expect(outcome(await api.patch(SETTINGS, { publicUpdates: true }, { applicationId: id }))).toBe('200');
    const open = await readFeed(id, 'stable/latest.json');
    expect([open.status, open.headers.get('cache-control')]).toEqual([200, 'public, max-age=60']);
    expect((await readFeed(id, 'beta/latest.json')).status).toBe(404);
    expect((await readFeed('no-id', 'beta/latest.json')).status).toBe(401);
  });

  it('are revalidated by ETag, and their URLs serve ranges without a credential', async () => {
    const { id, key, fileId, content } = await prepare();
    await publish(id, { version: '1.4.0', notes: 'Faster.', artifacts: [artifact(fileId)] });
    const { headers, text } = await readFeed(id, 'stable/latest.json', { key });
    const feed = JSON.parse(text);
    const sha512 = createHash('sha512').update(content).digest('base64');
    expect(feed).toMatchObject({ version: '1.4.0', channel: 'stable', notes: 'Faster.', artifacts: [{ sha512 }] });
    const again = await readFeed(id, 'stable/latest.json', { key, 'if-none-match': headers.get('etag') ?? '' });
    expect([again.status, again.text]).toEqual([304, '']);
    const part = await fetch(feed.artifacts[0].url, { headers: { range: 'bytes=4-8' } });
    expect([part.status, await part.text()]).toEqual([206, content.slice(4, 9)]);
    const { url } = feed.artifacts[0];
    // electron-updater requests the block map beside a file.
    for (const other of [url.replace('/download/', '/download/A'), url.replace('/stable/', '/beta/'), `${url}.blockmap`])
      expect((await fetch(other)).status).toBe(404);
  });

  it('never offer a yanked release, and its URLs end', async () => {
    const { id, key, fileId } = await prepare();
    await publish(id, { version: '1.0.0', artifacts: [artifact(fileId)] });
    const second = (await upload(api, id, 'second.exe', 'second')).data.id;
    const yanked = await publish(id, { version: '1.1.0', artifacts: [artifact(second)] });
    const { url } = JSON.parse((await readFeed(id, 'stable/latest.json', { key })).text).artifacts[0];
    await act(yanked, 'yank');
    expect(JSON.parse((await readFeed(id, 'stable/latest.json', { key })).text).version).toBe('1.0.0');
    expect((await fetch(url)).status).toBe(404);
  });

  it('offer a partial roll-out to the same share of the clients each time', async () => {
    const { id, key, fileId } = await prepare();
    await publish(id, { version: '1.0.0', artifacts: [artifact(fileId)] });
    const release = await publish(id, { version: '2.0.0', rolloutPercent: 50, artifacts: [artifact(fileId)] });
    const offers = async () => {
      const reads = Array.from({ length: 40 }, (_, n) => readFeed(id, `stable/latest.json?client=${n}`, { key }));
      return (await Promise.all(reads)).map(({ text }) => JSON.parse(text).version === '2.0.0');
    };
    const first = await offers();
    expect(new Set(first)).toEqual(new Set([true, false]));
    await act(release, 'rollout', { rolloutPercent: 80 });
    const later = await offers();
    expect(later.filter((isIn, n) => first[n] && !isIn)).toEqual([]);
    expect(JSON.parse((await readFeed(id, 'stable/latest.json', { key })).text).version).toBe('1.0.0');
    expect((await readFeed(id, 'stable/latest-mac.yml', { key })).status).toBe(404);
  });

  it('are those of electron-updater and Sparkle', async () => {
    const { id, key, fileId, content } = await prepare();
    const notes = 'Faster: "yes"\n- & <more>';
    const { privateKey } = generateKeyPairSync('ed25519');
    const signature = sign(null, Buffer.from(content), privateKey).toString('base64');
    const mac = artifact(fileId, { platform: 'darwin', name: 'Acme.zip', signature });
    const arm = artifact(fileId, { platform: 'linux', arch: 'arm64', name: 'Acme.AppImage' });
    const linux = artifact(fileId, { platform: 'linux', name: 'Acme-x64.AppImage' });
    await publish(id, { version: '1.4.0', notes, artifacts: [artifact(fileId), mac, linux, arm] });
    const yaml = await readFeed(id, 'stable/latest.yml', { key });
    expect([yaml.status, yaml.headers.get('content-type')]).toEqual([200, 'text/yaml; charset=utf-8']);
    expect(yaml.text).toContain('version: "1.4.0"\n');
    expect(yaml.text).toContain(`sha512: "${createHash('sha512').update(content).digest('base64')}"`);
    expect(yaml.text).toMatch(/url: ".*\/Acme%20Setup\.exe"/);
    expect((await readFeed(id, 'stable/latest-mac.yml', { key })).text).toMatch(/url: ".*\/Acme\.zip"/);
    expect((await readFeed(id, 'stable/latest-linux-arm64.yml', { key })).text).toMatch(
      /^files:\n {2}- url: ".*\/Acme\.AppImage"/m,
    );
    const { text } = await readFeed(id, 'stable/appcast.xml', { key });
    expect(text).toContain('Faster: &quot;yes&quot;\n- &amp; &lt;more&gt;');
    expect(text).toContain(`sparkle:edSignature="${signature}"`);
    expect(text).toContain(`length="${content.length}"`);
  });
});

/** The verification of a download in Tauri's updater, with a public key and a signature. */
const tauriVerifier = await findRustProgram(
  { name: 'minisign-verify', version: '0.2.5' },
  `use minisign_verify::{PublicKey, Signature};
use std::{env, fs};

fn main() {
    let paths: Vec<String> = env::args().collect();
    let text = |n: usize| fs::read_to_string(&paths[n]).unwrap();
    let key = PublicKey::decode(&text(1)).unwrap();
    let signature = Signature::decode(&text(2)).unwrap();
    key.verify(&fs::read(&paths[3]).unwrap(), &signature, true).unwrap();
}
`,
);
const tauriNeeds = typeof tauriVerifier === 'string' ? '' : `the crate minisign-verify (${tauriVerifier.unavailable})`;

const MINISIGN = { meta: { needs: 'minisign (Debian: apt install minisign)' }, skip: !existsSync('/usr/bin/minisign') };

describe('signatures of minisign', MINISIGN, () => {
  const minisign = (...args: string[]) => execFileSync('/usr/bin/minisign', args, { stdio: ['ignore', 'pipe', 'pipe'] });

  /** A key, and a function that signs bytes with it. */
  function createSigner() {
    const dir = mkdtempSync(join(tmpdir(), 'latchkey-minisign-'));
    const at = (name: string) => join(dir, name);
    minisign('-G', '-W', '-p', at('key.pub'), '-s', at('key'));
    return {
      publicKeyPath: at('key.pub'),
      publicKey: readFileSync(at('key.pub'), 'utf8').split('\n')[1] as string,
      sign(content: string, ...options: string[]) {
        writeFileSync(at('file'), content);
        minisign('-S', '-s', at('key'), '-m', at('file'), ...options);
        return readFileSync(at('file.minisig'), 'utf8');
      },
      store(name: string, bytes: Buffer) {
        writeFileSync(at(name), bytes);
        return at(name);
      },
      remove: () => rmSync(dir, { recursive: true }),
    };
  }

  it('verify at the publication, prehashed and not, and reach Tauri', async () => {
    const { id, key, fileId, content } = await prepare();
    const signer = createSigner();
    const stranger = createSigner();
    const prehashed = signer.sign(content);
    const legacy = signer.sign(content, '-l');
    const tampered = prehashed.replace(/^trusted comment: .*/m, 'trusted comment: other');
    const rejected = ['', 'no signature', signer.sign('other bytes'), stranger.sign(content), tampered];
    const settings = await api.patch(SETTINGS, { signingKeys: [signer.publicKey] }, { applicationId: id });
    expect(settings.data).toEqual({ publicUpdates: false, signingKeys: [signer.publicKey] });
    const { data: draft } = await createRelease(id, { version: '1.4.0' });
    for (const signature of rejected) {
      const artifacts = [signature === '' ? artifact(fileId) : artifact(fileId, { signature })];
      expect(outcome(await api.patch(`${RELEASES}/${draft.id}`, { artifacts }))).toBe('200');
      expect(outcome(await act(draft.id, 'publish'))).toBe('400 bad_request');
    }
    expect((await readFeed(id, 'stable/tauri/windows/x86_64/1.0.0', { key })).status).toBe(204);
    await api.patch(`${RELEASES}/${draft.id}`, {
      artifacts: [
        artifact(fileId, { signature: prehashed }),
        artifact(fileId, { signature: legacy, kind: 'archive' }),
        artifact(fileId, { signature: Buffer.from(prehashed).toString('base64'), kind: 'updater' }),
      ],
    });
    expect(outcome(await act(draft.id, 'publish'))).toBe('200');
    const update = JSON.parse((await readFeed(id, 'stable/tauri/windows/x86_64/1.3.0', { key })).text);
    expect(update).toMatchObject({ version: '1.4.0', signature: Buffer.from(prehashed).toString('base64') });
    expect(await (await fetch(update.url)).text()).toBe(content);
    for (const version of ['1.4.0', '2.0.0']) {
      expect((await readFeed(id, `stable/tauri/windows/x86_64/${version}`, { key })).status).toBe(204);
    }
    expect((await readFeed(id, 'stable/tauri/linux/x86_64/1.0.0', { key })).status).toBe(204);
    expect((await readFeed(id, 'stable/tauri/windows/x86_64/new', { key })).status).toBe(400);
    signer.remove();
    stranger.remove();
  });

  it('pass the request and the check of Tauri’s updater', { meta: { needs: tauriNeeds }, skip: tauriNeeds !== '' }, async () => {
    const { id, key, fileId, content } = await prepare();
    const signer = createSigner();
    onTestFinished(signer.remove);
    for (const [version, options] of [
      ['1.1.0', []],
      ['1.2.0', ['-l']],
    ] as const) {
      const signature = signer.sign(content, ...options);
      await publish(id, { version, notes: 'Faster.', artifacts: [artifact(fileId, { signature })] });
      const headers = { accept: 'application/json', 'user-agent': 'tauri-updater', key };
      const { status, text } = await readFeed(id, 'stable/tauri/windows/x86_64/1.0.0', headers);
      const update = JSON.parse(text);
      expect([status, update.version, update.notes]).toEqual([200, version, 'Faster.']);
      expect(update.pub_date).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/);
      const bytes = Buffer.from(await (await fetch(update.url)).arrayBuffer());
      const verify = (downloaded: Buffer) => {
        const path = signer.store('download', downloaded);
        const signaturePath = signer.store('signature', Buffer.from(update.signature, 'base64'));
        execFileSync(tauriVerifier as string, [signer.publicKeyPath, signaturePath, path], { stdio: 'pipe' });
      };
      verify(bytes);
      expect(() => verify(Buffer.from('other bytes'))).toThrow();
    }
  });
});

const SIGNIFY = ['/usr/bin/signify-openbsd', '/usr/bin/signify'].find((path) => existsSync(path));

it('signatures of signify verify at the publication', {
  meta: { needs: 'signify (Debian: apt install signify-openbsd)' },
  skip: SIGNIFY === undefined,
}, async () => {
  const { id, fileId, content } = await prepare();
  const dir = mkdtempSync(join(tmpdir(), 'latchkey-signify-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const signify = (...args: string[]) => execFileSync(SIGNIFY ?? '', args, { cwd: dir, stdio: 'pipe' });
  signify('-G', '-n', '-p', 'key.pub', '-s', 'key.sec');
  const signFile = (text: string) => {
    writeFileSync(join(dir, 'file'), text);
    signify('-S', '-s', 'key.sec', '-m', 'file');
    return readFileSync(join(dir, 'file.sig'), 'utf8');
  };
  const publicKey = readFileSync(join(dir, 'key.pub'), 'utf8').split('\n')[1];
  expect(outcome(await api.patch(SETTINGS, { signingKeys: [publicKey] }, { applicationId: id }))).toBe('200');
  const publishSigned = async (version: string, text: string) => {
    const { data } = await createRelease(id, { version, artifacts: [artifact(fileId, { signature: signFile(text) })] });
    return outcome(await act(data.id, 'publish'));
  };
  expect(await publishSigned('1.0.0', 'other bytes')).toBe('400 bad_request');
  expect(await publishSigned('1.1.0', content)).toBe('200');
});

it('latchkey release publish uploads a build, publishes it, and goes on with what it finds', async () => {
  const { id, key } = await prepare();
  const dir = mkdtempSync(join(tmpdir(), 'latchkey-release-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const write = (name: string, text: string) => {
    writeFileSync(join(dir, name), text);
    return join(dir, name);
  };
  const paths = [
    write('Acme Setup 2.1.0.exe', 'windows build'),
    write('Acme-2.1.0-arm64.dmg', 'mac build'),
    write('Acme-2.1.0-arm64.dmg.minisig', 'a signature'),
    write('latest.yml', 'version: 2.1.0'),
  ];
  const notes = write('CHANGELOG.md', '## 2.1.0\n\n- Speed\n\n## 2.0.0\n\n- Old\n');
  const env = { LATCHKEY_URL: api.baseUrl, LATCHKEY_KEY: (await createKey(owner)).text };
  const publishing = ['release', 'publish', ...paths, '--app', id, '--channel', 'beta', '--notes', notes];
  const drafted = await run([...publishing, '--draft', '--json'], env);
  expect([drafted.code, drafted.stderr]).toEqual([0, expect.stringContaining('uploaded')]);
  const published = await run([...publishing, '--rollout', '100', '--json'], env);
  expect([published.code, published.stderr]).toEqual([0, expect.stringContaining('unchanged')]);
  expect(JSON.parse(published.stdout)).toMatchObject({
    version: '2.1.0',
    channel: 'beta',
    notes: '- Speed',
    status: 'published',
  });
  const { artifacts } = JSON.parse((await readFeed(id, 'beta/latest.json', { key })).text);
  expect(artifacts).toMatchObject([
    { name: 'Acme Setup 2.1.0.exe', platform: 'windows', arch: 'x86_64', kind: 'exe' },
    { name: 'Acme-2.1.0-arm64.dmg', platform: 'darwin', arch: 'aarch64', kind: 'dmg', signature: 'a signature' },
  ]);
  expect((await run(['release', 'list', '--app', id], env)).stdout).toContain('2.1.0');
  const { id: release } = JSON.parse(published.stdout);
  const done = `2.1.0 of beta is already published from these files (${release}).\n`;
  expect(await run([...publishing, '--rollout', '5'], env)).toMatchObject({ code: 0, stdout: done });
  expect((await api.get(`${RELEASES}/${release}`)).data).toEqual(JSON.parse(published.stdout));
  const taken = { code: 1, stderr: expect.stringContaining('channel has a release') };
  expect(
    await run(
      publishing.filter((part) => !part.includes('.dmg')),
      env,
    ),
  ).toMatchObject(taken);
  write('Acme Setup 2.1.0.exe', 'another build');
  expect(await run(publishing, env)).toMatchObject(taken);
  write('Acme Setup 2.1.0.exe', 'windows build');
  expect((await run(['release', 'yank', release], env)).stdout).toBe('Yanked 2.1.0 of beta.\n');
  expect(await run(publishing, env)).toMatchObject(taken);
  expect((await run([...publishing.slice(0, 2), notes, '--app', id], env)).code).not.toBe(0);
  // Another file that has the name of a build is not published in its place.
  const planted = write('Acme Setup 2.2.0.exe', 'planted');
  await upload(api, id, `r-${createHash('sha256').update('planted').digest('hex').slice(0, 14)}`, 'other bytes');
  expect(await run(['release', 'publish', planted, '--app', id], env)).toMatchObject({ code: 1, stdout: '' });
});

it('latchkey apply publishes the declared version of a channel', async () => {
  const id = await createApplication(api, 'Difference Engine 27');
  const { data: draft } = await createRelease(id, { version: '1.4.0' });
  const env = { LATCHKEY_URL: api.baseUrl, LATCHKEY_KEY: (await createKey(owner)).text };
  const apply = (rolloutPercent: number, ...options: string[]) => {
    const channels = `channels: { stable: { version: "1.4.0", rolloutPercent: ${rolloutPercent} } }`;
    const text = `applications: [{ name: Difference Engine 27, settings: { status: paused }, ${channels} }]\n`;
    return run(['apply', '-f', '-', '--yes', ...options], env, text);
  };
  const planned = '~ Difference Engine 27   status online → paused, publish 1.4.0 of stable to 10 %\n';
  expect((await apply(10, '--dry-run')).stdout).toBe(`${planned}1 change. Run without --dry-run to apply it.\n`);
  expect((await api.get(`${RELEASES}/${draft.id}`)).data.status).toBe('draft');
  expect(await apply(10)).toMatchObject({ code: 0, stdout: `${planned}1 change applied.\n` });
  expect((await api.get(`${RELEASES}/${draft.id}`)).data).toMatchObject({ status: 'published', rolloutPercent: 10 });
  expect((await apply(10)).stdout).toBe('No changes.\n');
  expect((await apply(60)).code).toBe(0);
  expect((await api.get(`${RELEASES}/${draft.id}`)).data).toMatchObject({ status: 'published', rolloutPercent: 60 });
});
