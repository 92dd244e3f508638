import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from '@latchkey/cli/testing/run';
import { findRustProgram } from '@latchkey/testkit/process/rust-program';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Answer, Api } from '../client/api.ts';
import { readAuditLog } from '../client/audit-log.ts';
import { createApplication, createKey, type Owner, signUp } from '../client/caller.ts';
import { deleteFile, outcome, upload } from '../client/files.ts';

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

it('a release goes from draft to published to yanked, and holds its files meanwhile; stable sets the version', async () => {
  const { id, fileId } = await prepare();
  const versionOf = async () => (await api.get('/api/v1/panel/get-application-settings', { applicationId: id })).data.version;
  const { data: draft } = await createRelease(id, { version: '1.4.0', artifacts: [artifact(fileId)] });
  expect(draft).toEqual({
    ...{ id: draft.id, version: '1.4.0', channel: 'stable', notes: '', status: 'draft', publishedAt: null },
    ...{ rolloutPercent: 100, artifacts: [artifact(fileId)] },
  });
  const changed = await api.patch(`${RELEASES}/${draft.id}`, { notes: 'Faster.' });
  expect(changed.data).toEqual({ ...draft, notes: 'Faster.' });
  await publish(id, { version: '9.0.0-beta.1', channel: 'beta' });
  expect(await versionOf()).toBe('1.0');
  const published = await act(draft.id, 'publish', { rolloutPercent: 50 });
  expect(published.data).toMatchObject({ status: 'published', rolloutPercent: 50, publishedAt: expect.any(String) });
  expect(await versionOf()).toBe('1.4.0');
  expect(outcome(await deleteFile(api, id, fileId))).toBe('409 file_in_use');
  expect((await act(draft.id, 'rollout', { rolloutPercent: 100 })).data.rolloutPercent).toBe(100);
  const lower = (await createRelease(id, { version: '1.3.9' })).data.id;
  const rejected = [
    ...[await act(draft.id, 'publish'), await api.patch(`${RELEASES}/${draft.id}`, { notes: 'x' }), await act(lower, 'publish')],
    ...[await api.delete(`${RELEASES}/${draft.id}`), await createRelease(id, { version: '1.4.0' })],
  ];
  expect(rejected.map(outcome)).toEqual([...Array(4).fill('400 bad_request'), '409 release_exists']);
  expect(outcome(await act(draft.id, 'yank', { reason: 'x'.repeat(501) }))).toBe('400 VALIDATION_ERROR');
  expect((await act(draft.id, 'yank', { reason: 'It crashes.' })).data.status).toBe('yanked');
  const [yank] = await readAuditLog(api, 1, { action: 'release.yanked' });
  expect(yank?.changes).toMatchObject({ version: '1.4.0', reason: 'It crashes.' });
  expect(outcome(await act(draft.id, 'rollout', { rolloutPercent: 1 }))).toBe('400 bad_request');
  expect(outcome(await deleteFile(api, id, fileId))).toBe('200');
  expect(outcome(await api.delete(`${RELEASES}/${lower}`))).toBe('200');
  expect((await api.get(RELEASES, { applicationId: id })).data).toHaveLength(2);
});

it.each([
  ['a version that is not SemVer', { version: '1.4' }],
  ['a channel in upper case', { version: '1.4.0', channel: 'Beta' }],
  ['a share over 100', { version: '1.4.0', rolloutPercent: 101 }],
  ['two artifacts of a kind', { version: '1.4.0', artifacts: [artifact('x'), artifact('y')] }],
])('a release is rejected with %s', async (_what, body) => {
  const id = await createApplication(api);
  expect(outcome(await createRelease(id, body))).toBe('400 VALIDATION_ERROR');
});

describe('feeds', () => {
  it('need the HTTP key of the application, unless its updates are public', async () => {
    const [{ id, key, fileId }, other] = [await prepare(), await prepare()];
    expect(outcome(await createRelease(other.id, { version: '1.0.0', artifacts: [artifact(fileId)] }))).toBe('404 not_found');
    await publish(id, { version: '1.4.0', artifacts: [artifact(fileId)] });
    const latest = async (applicationId: string, given?: string) =>
      (await readFeed(applicationId, 'stable/latest.json', { ...(given && { key: given }) })).status;
    expect([await latest(id, key), await latest(id), await latest(id, `${key.slice(0, -1)}!`)]).toEqual([200, 401, 401]);
    expect([await latest(id, other.key), await latest(other.id, key), await latest('no-id')]).toEqual([404, 404, 401]);
    expect(outcome(await api.patch(SETTINGS, { publicUpdates: true }, { applicationId: id }))).toBe('200');
    const open = await readFeed(id, 'stable/latest.json');
    expect([open.status, open.headers.get('cache-control')]).toEqual([200, 'public, max-age=60']);
    expect((await readFeed(id, 'beta/latest.json')).status).toBe(404);
  });

  it('are revalidated by ETag, and their URLs serve ranges without a credential until the release is yanked', async () => {
    const { id, key, fileId, content } = await prepare();
    const release = await publish(id, { version: '1.4.0', notes: 'Faster.', artifacts: [artifact(fileId)] });
    const { headers, text } = await readFeed(id, 'stable/latest.json', { key });
    const feed = JSON.parse(text);
    const sha512 = createHash('sha512').update(content).digest('base64');
    expect(feed).toMatchObject({ version: '1.4.0', channel: 'stable', notes: 'Faster.', artifacts: [{ sha512 }] });
    const again = await readFeed(id, 'stable/latest.json', { key, 'if-none-match': headers.get('etag') ?? '' });
    expect([again.status, again.text]).toEqual([304, '']);
    const { url } = feed.artifacts[0];
    const part = await fetch(url, { headers: { range: 'bytes=4-8' } });
    expect([part.status, await part.text()]).toEqual([206, content.slice(4, 9)]);
    // electron-updater requests the block map beside a file.
    for (const other of [url.replace('/download/', '/download/A'), url.replace('/stable/', '/beta/'), `${url}.blockmap`])
      expect((await fetch(other)).status).toBe(404);
    await act(release, 'yank');
    expect((await fetch(url)).status).toBe(404);
  });

  it('offer a roll-out to a share of the clients, and none to a client without a name', async () => {
    const { id, key, fileId } = await prepare();
    await publish(id, { version: '1.0.0', artifacts: [artifact(fileId)] });
    await publish(id, { version: '2.0.0', rolloutPercent: 50, artifacts: [artifact(fileId)] });
    const versionFor = async (query = '') => JSON.parse((await readFeed(id, `stable/latest.json${query}`, { key })).text).version;
    const versions = await Promise.all(Array.from({ length: 40 }, (_, n) => versionFor(`?client=${n}`)));
    expect(new Set(versions)).toEqual(new Set(['1.0.0', '2.0.0']));
    expect(await versionFor()).toBe('1.0.0');
  });

  it.each([
    ['latest.yml', 'text/yaml', 'windows'],
    ['latest-mac.yml', 'text/yaml', 'darwin'],
    ['latest-linux.yml', 'text/yaml', 'linux'],
    ['latest-linux-arm64.yml', 'text/yaml', 'linux'],
    ['appcast.xml', 'application/xml', 'darwin'],
  ])('are those of electron-updater and Sparkle: %s', async (name, type, platform) => {
    const { id, key, fileId } = await prepare();
    const arch = name.includes('arm64') ? 'arm64' : 'x64';
    await publish(id, { version: '1.4.0', artifacts: [artifact(fileId, { platform, arch })] });
    const { status, headers, text } = await readFeed(id, `stable/${name}`, { key });
    expect([status, headers.get('content-type')]).toEqual([200, `${type}; charset=utf-8`]);
    expect(text).toMatch(/url[:=] ?".*\/Acme%20Setup\.exe"/);
    expect((await readFeed(id, `stable/${name === 'latest.yml' ? 'latest-mac.yml' : 'latest.yml'}`, { key })).status).toBe(404);
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
