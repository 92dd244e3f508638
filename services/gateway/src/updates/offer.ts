import { createHash } from 'node:crypto';
import type { Release, ReleaseArtifact } from '@latchkey/proto/latchkey/apps/v1/release_pb';

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

/** The artifacts of some that a client of another architecture than ARM can run. */
export function withoutArm(artifacts: readonly ReleaseArtifact[]): ReleaseArtifact[] {
  return artifacts.filter(({ arch }) => !/^(?:aarch64|arm)/.test(canonicalLabel(arch)));
}

/**
 * True if a client is offered a release. A client stays in when the share grows. One without a name
 * is offered only complete roll-outs.
 */
export function isOffered({ id, rolloutPercent }: Release, client: string | undefined): boolean {
  if (rolloutPercent >= 100) return true;
  if (client === undefined || client === '') return false;
  return createHash('sha256').update(`${id} ${client}`).digest().readUInt32BE(0) % 100 < rolloutPercent;
}
