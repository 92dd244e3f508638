import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { run } from '../testing/run.ts';

const dir = mkdtempSync(join(tmpdir(), 'latchkey-publish-'));
afterAll(() => rmSync(dir, { recursive: true }));
const build = join(dir, 'Acme-1.4.0.exe');
const notes = join(dir, 'notes.md');
const folder = join(dir, 'win-unpacked');
writeFileSync(build, 'a build');
writeFileSync(notes, 'x'.repeat(10_001));
mkdirSync(folder);

// No server listens: what is sent fails with another exit code.
const env = { LATCHKEY_URL: 'http://127.0.0.1:9', LATCHKEY_KEY: 'lk_mgmt_key' };

it.each<[string, string[], RegExp]>([
  ['a share over 100', [build, '--rollout', '101'], /whole number from 0 to 100/],
  ['a fraction', [build, '--rollout', '5.5'], /whole number from 0 to 100/],
  ['a channel in upper case', [build, '--channel', 'Beta'], /must be 1 to 32 of a-z/],
  ['another version', [build, '--release-version', 'v1.4.0'], /version v1\.4\.0 must be a Semantic Version/],
  ['long notes', [build, '--notes', notes], /longer than 10000 characters/],
  ['a missing file', [`${build}x`], /exex does not exist/],
  ['folders alone', [folder], /No file to publish/],
])('rejects %s before anything is uploaded', async (_what, args, message) => {
  const { code, stderr } = await run(['release', 'publish', ...args, '--app', 'Acme'], env);
  expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
});

it('skips the folders of a build', async () => {
  const { code } = await run(['release', 'publish', build, folder, '--app', 'Acme'], env);
  expect(code).not.toBe(2);
});
