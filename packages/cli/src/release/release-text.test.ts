import { guessArtifact } from '@latchkey/contract/guess-artifact';
import { expect, it } from 'vitest';
import { readNotes, readVersion } from './release-text.ts';

it.each([
  ['Acme-Setup-1.4.0.exe', 'windows', 'x86_64', 'exe'],
  ['Acme_1.4.0_arm64.dmg', 'darwin', 'aarch64', 'dmg'],
  ['Acme-1.4.0-mac.zip', 'darwin', 'x86_64', 'zip'],
  ['acme_1.4.0_amd64.AppImage', 'linux', 'x86_64', 'appimage'],
  ['Acme.app.tar.gz', 'darwin', 'x86_64', 'app.tar.gz'],
  ['acme-linux-aarch64', 'linux', 'aarch64', 'program'],
])('reads what %s is for', (name, platform, arch, kind) => {
  expect(guessArtifact(name)).toEqual({ platform, arch, kind });
});

it('does not guess a platform', () => {
  expect(guessArtifact('winter-1.4.0.zip')).toBeUndefined();
});

it.each([
  ['Acme-Setup-1.4.0.exe', '1.4.0'],
  ['Acme-2.0.0-beta.3-x64.dmg', '2.0.0-beta.3'],
  ['Acme-v10.2.33_arm64.deb', '10.2.33'],
  ['Acme.exe', undefined],
])('reads the version of %s', (name, version) => {
  expect(readVersion(name)).toBe(version);
});

it('takes the section of the version from a changelog', () => {
  const text = '# Changelog\n\n## [1.4.0] - 2026-05-12\n\n### Added\n\n- Speed\n\n## 1.3.0\n\n- Old\n';
  expect(readNotes(text, '1.4.0')).toBe('### Added\n\n- Speed');
  expect(readNotes(text, '1.3.0')).toBe('- Old');
  expect(readNotes('Just notes.\n', '1.4.0')).toBe('Just notes.');
});
