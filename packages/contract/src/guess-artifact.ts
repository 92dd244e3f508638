/** Extensions of files for updaters, each with its platform if only one has it. */
const EXTENSIONS: ReadonlyArray<readonly [extension: string, platform?: string]> = [
  ['app.tar.gz', 'darwin'],
  ['appimage.tar.gz', 'linux'],
  ['nsis.zip', 'windows'],
  ['msi.zip', 'windows'],
  ['tar.gz'],
  ['zip'],
  ['exe', 'windows'],
  ['msi', 'windows'],
  ['dmg', 'darwin'],
  ['pkg', 'darwin'],
  ['appimage', 'linux'],
  ['deb', 'linux'],
  ['rpm', 'linux'],
];

const PLATFORMS: ReadonlyArray<readonly [RegExp, string]> = [
  [/(?:^|[^a-z])(?:darwin|mac|macos|osx)(?:[^a-z]|$)/, 'darwin'],
  [/(?:^|[^a-z])(?:win|win32|windows)(?:[^a-z]|$)/, 'windows'],
  [/(?:^|[^a-z])linux(?:[^a-z]|$)/, 'linux'],
];

const ARCHITECTURES: ReadonlyArray<readonly [RegExp, string]> = [
  [/aarch64|arm64/, 'aarch64'],
  [/universal/, 'universal'],
  [/armv7|armhf/, 'armv7'],
  [/i686|ia32|i386/, 'i686'],
];

/** Platform, architecture and kind by the name of a file; undefined for an unknown platform. */
export function guessArtifact(name: string) {
  const lower = name.toLowerCase();
  const [extension, own] = EXTENSIONS.find(([end]) => lower.endsWith(`.${end}`)) ?? [];
  const platform = own ?? PLATFORMS.find(([pattern]) => pattern.test(lower))?.[1];
  if (!platform) return undefined;
  const arch = ARCHITECTURES.find(([pattern]) => pattern.test(lower))?.[1] ?? 'x86_64';
  return { platform, arch, kind: extension ?? 'program' };
}
