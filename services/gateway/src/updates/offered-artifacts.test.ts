import { create } from '@bufbuild/protobuf';
import { ReleaseSchema } from '@latchkey/proto/latchkey/apps/v1/release_pb';
import { expect, it } from 'vitest';
import { electronUpdate } from './feed-formats.ts';
import { artifactsFor, ELECTRON_FEEDS, tauriArtifact } from './offered-artifacts.ts';
import { isOffered } from './rollout.ts';
import { sparkleSignature, tauriSignature } from './signature-formats.ts';

const release = (rolloutPercent: number) => create(ReleaseSchema, { id: 'a', version: '1.0.0', rolloutPercent });
const clients = Array.from({ length: 2_000 }, (_, n) => `client ${n}`);
const artifact = { fileId: 'f', name: 'x', platform: 'macOS', arch: 'ARM64', kind: 'zip', sha512: 's', byteSize: 1n };

it('offers a roll-out to its share of the clients, who stay in as it grows', () => {
  const shares = [0, 10, 50, 100].map((percent) => clients.filter((client) => isOffered(release(percent), client)));
  const [none, tenth = [], half = [], all] = shares;
  expect([none, all]).toEqual([[], clients]);
  expect(tenth.length / clients.length).toBeCloseTo(0.1, 1);
  expect(half.length / clients.length).toBeCloseTo(0.5, 1);
  expect(tenth.every((client) => half.includes(client))).toBe(true);
  expect([isOffered(release(99), undefined), isOffered(release(99), '')]).toEqual([false, false]);
});

it('knows other names of platforms and architectures', () => {
  const found = create(ReleaseSchema, { artifacts: [artifact] });
  expect(artifactsFor(found, 'darwin', 'aarch64')).toHaveLength(1);
  expect(artifactsFor(found, 'darwin', 'x86_64')).toEqual([]);
  expect(artifactsFor(found, 'constructor')).toEqual([]);
  const others = ['x64', 'universal'].map((arch) => ({ ...artifact, arch }));
  const linux = [artifact, { ...artifact, arch: 'armv7l' }, ...others].map((each) => ({ ...each, platform: 'linux' }));
  const offered = ELECTRON_FEEDS['latest-linux.yml']?.[1](create(ReleaseSchema, { artifacts: linux }));
  expect(offered?.map(({ arch }) => arch)).toEqual(['x64', 'universal']);
});

it('escapes texts in YAML', () => {
  const notes = `]]> <a href="x">&'\u0001\u2028\ud83d\ude00`;
  const found = create(ReleaseSchema, { version: '1.0.0', notes, artifacts: [artifact] });
  const yaml = electronUpdate(found, found.artifacts, () => 'https://x');
  expect(yaml).toContain(String.raw`releaseNotes: "]]> <a href=\"x\">&'\u0001\u2028`);
  expect(yaml.split('\n').every((line) => /^(?:files:|(?: {2}- | {4})?\w+: (?:".*"|\d+)|)$/.test(line))).toBe(true);
});

it('lists files for x86_64 first for electron-updater', () => {
  const artifacts = ['arm64', 'universal', 'x64'].map((arch) => ({ ...artifact, arch, name: arch }));
  const found = create(ReleaseSchema, { version: '1.0.0', artifacts });
  const yaml = electronUpdate(found, found.artifacts, ({ name }) => name);
  expect([...yaml.matchAll(/(?:url|path): "(.*)"/g)].map(([, url]) => url)).toEqual(['x64', 'arm64', 'universal', 'x64']);
});

it('finds signatures for Tauri in text and Base64 of minisign, and none of signify', () => {
  const signify = `untrusted comment: x\n${Buffer.from('Ed'.padEnd(74)).toString('base64')}\n`;
  const minisign = `${signify}trusted comment: y\nBBBB\n`;
  const base64 = Buffer.from(minisign).toString('base64');
  const wrapped = base64.replace(/.{76}/g, '$&\n');
  const others = [signify, Buffer.from(signify).toString('base64'), Buffer.alloc(64).toString('base64')];
  const signatures = [minisign, base64, wrapped, ...others];
  const { artifacts } = create(ReleaseSchema, { artifacts: signatures.map((signature) => ({ ...artifact, signature })) });
  expect(artifacts.map(tauriSignature)).toEqual([base64, base64, base64, undefined, undefined, undefined]);
  const named = ['Acme.dmg', 'Acme.app.tar.gz'].map((name) => ({ ...artifact, name, signature: minisign }));
  const nameOf = (artifacts: typeof named) => tauriArtifact(create(ReleaseSchema, { artifacts }), 'darwin', 'aarch64')?.name;
  expect([nameOf(named), nameOf(named.slice(0, 1))]).toEqual(['Acme.app.tar.gz', 'Acme.dmg']);
});

it('finds the Ed25519 signature for Sparkle in other formats, unless it is of a hash', () => {
  const bytes = Buffer.alloc(64, 7);
  const minisign = (algorithm: string) =>
    `untrusted comment: x\n${Buffer.concat([Buffer.from(algorithm), Buffer.alloc(8), bytes]).toString('base64')}\n`;
  const signatureOf = (signature: string) =>
    sparkleSignature(create(ReleaseSchema, { artifacts: [{ ...artifact, signature }] }).artifacts[0] as never);
  expect(signatureOf(bytes.toString('base64'))).toBe(bytes.toString('base64'));
  expect(signatureOf(minisign('Ed'))).toBe(bytes.toString('base64'));
  for (const text of [minisign('ED'), '', 'x']) expect(signatureOf(text)).toBeUndefined();
});
