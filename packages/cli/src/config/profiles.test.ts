import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { profilesPath, readProfiles, writeProfiles } from './profiles.ts';

const PROFILES = { default: { url: 'https://panel.example.com', key: 'lk_mgmt_1' } };

async function createPath(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'latchkey-profiles-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return profilesPath({ XDG_CONFIG_HOME: folder });
}

it('stores profiles for their owner alone, and leaves no other file behind', async () => {
  const path = await createPath();
  expect(await readProfiles(path)).toEqual({});
  await writeProfiles(path, {});
  await writeProfiles(path, PROFILES);
  expect(await readProfiles(path)).toEqual(PROFILES);
  expect([(await stat(path)).mode & 0o777, (await stat(dirname(path))).mode & 0o777]).toEqual([0o600, 0o700]);
  expect(await readdir(dirname(path))).toEqual(['profiles.json']);
});

it('reports a damaged file without its text', async () => {
  const path = await createPath();
  await writeProfiles(path, PROFILES);
  await writeFile(path, '{"default": {"key": "lk_mgmt_1"');
  await expect(readProfiles(path)).rejects.toThrow(`${path} is damaged. Remove it and run "latchkey login".`);
});

it.each([
  ['linux', {}, '/home/ada/.config/latchkey/profiles.json'],
  ['darwin', {}, '/home/ada/Library/Application Support/latchkey/profiles.json'],
  ['linux', { XDG_CONFIG_HOME: '/etc/ada' }, '/etc/ada/latchkey/profiles.json'],
] as const)('uses the configuration folder of %s with %j', (platform, env, path) => {
  expect(profilesPath({ HOME: '/home/ada', ...env }, platform)).toBe(path);
});
