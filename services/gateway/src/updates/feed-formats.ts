import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { Release, ReleaseArtifact } from '@latchkey/proto/latchkey/apps/v1/release_pb';
import { canonicalLabel, sparkleArtifact } from './offered-artifacts.ts';
import { sparkleSignature, tauriSignature } from './signature-formats.ts';

export type UrlOf = (artifact: ReleaseArtifact) => string;

const publishedAt = ({ publishedAt }: Release) => (publishedAt ? timestampDate(publishedAt) : new Date(0));

/** The response of a dynamic server of Tauri's updater. */
export function tauriUpdate(release: Release, artifact: ReleaseArtifact, urlOf: UrlOf): string {
  const { version, notes } = release;
  const update = { version, notes, pub_date: publishedAt(release).toISOString(), url: urlOf(artifact) };
  return JSON.stringify({ ...update, signature: tauriSignature(artifact) });
}

/**
 * `latest.yml` of electron-updater. Values are JSON strings, which are valid YAML. The files for
 * x86_64 are the first: electron-updater takes the first one if no name has its architecture.
 */
export function electronUpdate(release: Release, found: readonly ReleaseArtifact[], urlOf: UrlOf): string {
  const isOther = ({ arch }: ReleaseArtifact) => Number(canonicalLabel(arch) !== 'x86_64');
  const artifacts = found.toSorted((a, b) => isOther(a) - isOther(b));
  const files = artifacts.map((a) => `  - url: ${quote(urlOf(a))}\n    sha512: ${quote(a.sha512)}\n    size: ${a.byteSize}\n`);
  const [first] = artifacts as [ReleaseArtifact];
  return [
    `version: ${quote(release.version)}\n`,
    `files:\n${files.join('')}`,
    `path: ${quote(urlOf(first))}\nsha512: ${quote(first.sha512)}\n`,
    `releaseNotes: ${quote(release.notes)}\n`,
    `releaseDate: ${quote(publishedAt(release).toISOString())}\n`,
  ].join('');
}

const quote = (text: string) => JSON.stringify(text).replace(/[\x7f-\x9f\u2028\u2029\ufeff]/g, escapeUnit);
const escapeUnit = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Sparkle's appcast of the releases for macOS. An item whose artifact needs ARM says so. */
export function appcast(title: string, releases: readonly Release[], urlOf: UrlOf): string {
  const items = releases.map((release) => {
    const artifact = sparkleArtifact(release);
    return artifact ? appcastItem(release, artifact, urlOf) : '';
  });
  return [
    '<?xml version="1.0" encoding="utf-8"?>\n',
    '<rss version="2.0" xmlns:sparkle="http://www.andymatuschak.org/xml-namespaces/sparkle">\n',
    `<channel>\n<title>${escapeXml(title)}</title>\n${items.join('')}</channel>\n</rss>\n`,
  ].join('');
}

function appcastItem(release: Release, artifact: ReleaseArtifact, urlOf: UrlOf): string {
  const version = escapeXml(release.version);
  const signature = sparkleSignature(artifact);
  return [
    `<item>\n<title>${version}</title>\n<pubDate>${publishedAt(release).toUTCString()}</pubDate>\n`,
    `<sparkle:version>${version}</sparkle:version>\n`,
    `<sparkle:shortVersionString>${version}</sparkle:shortVersionString>\n`,
    canonicalLabel(artifact.arch) === 'aarch64' ? '<sparkle:hardwareRequirements>arm64</sparkle:hardwareRequirements>\n' : '',
    release.notes === '' ? '' : `<description sparkle:format="plain-text">${escapeXml(release.notes)}</description>\n`,
    `<enclosure url="${escapeXml(urlOf(artifact))}" length="${artifact.byteSize}" type="application/octet-stream"`,
    signature === undefined ? '' : ` sparkle:edSignature="${escapeXml(signature)}"`,
    '/>\n</item>\n',
  ].join('');
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&apos;' };

function escapeXml(text: string): string {
  const allowed = text.replace(/[^\t\n\r\x20-\ufffd\u{10000}-\u{10ffff}]/gu, '');
  return allowed.replace(/[&<>"']/g, (character) => ENTITIES[character] as string);
}

/** Latchkey's own feed. */
export function latestJson(release: Release, urlOf: UrlOf): string {
  const { version, channel, notes, artifacts } = release;
  return JSON.stringify({
    ...{ version, channel, notes, publishedAt: publishedAt(release).toISOString() },
    artifacts: artifacts.map((artifact) => {
      const { name, platform, arch, kind, checksum, sha512, signature } = artifact;
      return {
        ...{ name, platform, arch, kind, url: urlOf(artifact), byteSize: Number(artifact.byteSize), checksum, sha512 },
        ...(signature !== '' && { signature }),
      };
    }),
  });
}
