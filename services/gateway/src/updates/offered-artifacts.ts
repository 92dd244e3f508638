import type { Release, ReleaseArtifact } from '@latchkey/proto/latchkey/apps/v1/release_pb';
import { sparkleSignature, tauriSignature } from './signature-formats.ts';

/** Names that updaters and build tools use for the same thing. */
const ALIASES: Readonly<Record<string, string>> = {
  win: 'windows',
  win32: 'windows',
  macos: 'darwin',
  mac: 'darwin',
  osx: 'darwin',
  x64: 'x86_64',
  amd64: 'x86_64',
  arm64: 'aarch64',
  ia32: 'i686',
  x86: 'i686',
};

export function canonicalLabel(label: string): string {
  const lower = label.toLowerCase();
  return Object.hasOwn(ALIASES, lower) ? (ALIASES[lower] as string) : lower;
}

/** The artifacts of a release for a platform, and for an architecture if one is given. */
export function artifactsFor({ artifacts }: Release, platform: string, arch?: string): ReleaseArtifact[] {
  const isFor = (label: string, wanted: string) => canonicalLabel(label) === canonicalLabel(wanted);
  return artifacts.filter((a) => isFor(a.platform, platform) && (arch === undefined || isFor(a.arch, arch)));
}

const isArm = ({ arch }: ReleaseArtifact) => /^(?:aarch64|arm)/.test(canonicalLabel(arch));

/** System and artifacts of each feed of electron-updater, which picks one by its name. */
export const ELECTRON_FEEDS: Readonly<Record<string, readonly [system: string, (release: Release) => ReleaseArtifact[]]>> = {
  'latest.yml': ['Windows', (release) => artifactsFor(release, 'windows')],
  'latest-mac.yml': ['macOS', (release) => artifactsFor(release, 'darwin')],
  'latest-linux.yml': ['Linux', (release) => artifactsFor(release, 'linux').filter((artifact) => !isArm(artifact))],
  'latest-linux-arm64.yml': ['Linux on ARM', (release) => artifactsFor(release, 'linux', 'aarch64')],
};

/** Bundles that Tauri's updater installs. With signing keys, disk images are signed too. */
const TAURI_BUNDLE = /\.(?:app\.tar\.gz|appimage(?:\.tar\.gz)?|(?:nsis|msi)\.zip|exe|msi)$/i;

/** The artifact for a platform that Tauri can install. */
export function tauriArtifact(release: Release, platform: string, arch: string): ReleaseArtifact | undefined {
  const signed = artifactsFor(release, platform, arch).filter((artifact) => tauriSignature(artifact) !== undefined);
  return signed.find(({ name }) => TAURI_BUNDLE.test(name)) ?? signed[0];
}

/**
 * The artifact for macOS in Sparkle's appcast, which asks for no architecture: a universal
 * one first, then x86_64, which ARM Macs run too, then ARM.
 */
export function sparkleArtifact(release: Release): ReleaseArtifact | undefined {
  const rank = ({ arch }: ReleaseArtifact) => ['x86_64', 'aarch64'].indexOf(canonicalLabel(arch));
  const artifacts = artifactsFor(release, 'darwin').toSorted((a, b) => rank(a) - rank(b));
  return artifacts.find((artifact) => sparkleSignature(artifact) !== undefined) ?? artifacts[0];
}
