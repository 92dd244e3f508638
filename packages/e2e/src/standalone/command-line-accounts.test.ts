import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '@latchkey/cli/testing/run';
import { beforeEach, expect, inject, it, onTestFinished } from 'vitest';
import { createApplication, createKey, type Owner, PASSWORD, signUp, unique } from '../client/caller.ts';
import { findFileId } from '../client/files.ts';
import { signUpGuarded } from '../client/two-factor.ts';
import { createDataDir } from '../instance/launcher-process.ts';

const { baseUrl } = inject('latchkeyInstance');

let folder: string;
let env: NodeJS.ProcessEnv;
beforeEach(async () => {
  const { path, remove } = await createDataDir();
  onTestFinished(remove);
  folder = path;
  env = { XDG_CONFIG_HOME: folder, LATCHKEY_URL: baseUrl };
});
const withPassword = ({ email }: Owner) => ['--email', email, '--password-stdin'];
const isValid = ({ revokedAt }: { revokedAt: string | null }) => revokedAt === null;
const readKeys = async ({ session }: Owner) => (await session.get('/api/v1/panel/api-keys')).data;

it('login creates a key with a second factor and ends its session; the next login and logout --revoke revoke it', async () => {
  const owner = await signUpGuarded();
  const { password, recoveryCodes } = owner;
  const login = (...lines: string[]) => run(['login', ...withPassword(owner)], env, lines.join('\n'));
  expect(await login('wrong password', owner.nextCode())).toMatchObject({ code: 3, stdout: '' });
  expect(await login(password, owner.wrongCode())).toMatchObject({
    code: 3,
    stderr: expect.stringMatching(/^The code is wrong/),
  });
  expect(await login(password)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^There is no terminal to ask for the code/),
  });
  expect(await readKeys(owner)).toEqual([]);

  expect(await login(password, owner.nextCode())).toMatchObject({ code: 0, stderr: '' });
  expect(await run(['whoami', '--json'], env)).toMatchObject({ code: 0, stdout: expect.stringContaining(owner.email) });
  expect(await readFile(join(folder, 'latchkey', 'profiles.json'), 'utf8')).not.toContain(password);
  const signedOut = (await owner.session.get('/api/v1/panel/audit-log', { action: 'account.signed_out' })).data.entries;
  expect(signedOut).toHaveLength(1);
  expect(await login(password, recoveryCodes[0] ?? '')).toMatchObject({ code: 0 });
  expect((await readKeys(owner)).filter(isValid)).toHaveLength(1);

  const logout = await run(['logout', '--revoke', ...withPassword(owner)], env, `${password}\n${recoveryCodes[1]}\n`);
  expect(logout).toMatchObject({ code: 0, stderr: '' });
  expect((await readKeys(owner)).filter(isValid)).toEqual([]);
  expect(await readFile(join(folder, 'latchkey', 'profiles.json'), 'utf8')).toBe('{}\n');
});

it('login leaves no valid key behind that it could not store', async () => {
  const owner = await signUp();
  const file = join(folder, 'file');
  await writeFile(file, '');
  const { code, stderr } = await run(['login', ...withPassword(owner)], { ...env, XDG_CONFIG_HOME: file }, owner.password);
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/profiles\.json can't be written .*\n$/) });
  expect((await readKeys(owner)).map(isValid)).toEqual([false]);
});

it('api-keys creates a restricted key, which commands may use by id, and revokes it', async () => {
  const owner = await signUp();
  const name = 'Difference Engine';
  const applicationId = await createApplication(owner.session, name);
  const { text: key } = await createKey(owner);
  const create = ['api-keys', 'create', 'ci-upload', '--scopes', 'files:upload', '--app', name, ...withPassword(owner)];
  const created = await run(create, env, owner.password);
  expect(created).toMatchObject({ code: 0, stdout: expect.stringMatching(/^lk_mgmt_\w+\n$/) });
  const restricted = { ...env, LATCHKEY_KEY: created.stdout.trim() };
  await writeFile(join(folder, 'a.txt'), 'a');
  expect(await run(['files', 'upload', join(folder, 'a.txt'), '--app', applicationId], restricted)).toMatchObject({ code: 0 });
  expect(await run(['apps', 'pause', applicationId], restricted)).toMatchObject({ code: 3 });
  expect(await run(['apps', 'pause', 'Difference Engin'], { ...env, LATCHKEY_KEY: key })).toEqual({
    code: 4,
    stdout: '',
    stderr: `No application is called "Difference Engin". Did you mean "${name}"?\n`,
  });
  // The old key has expired, so the name is that of the new one alone.
  const rotate = await run(['api-keys', 'rotate', 'ci-upload', ...withPassword(owner)], env, owner.password);
  expect(rotate).toMatchObject({ code: 0 });
  const revoke = await run(['api-keys', 'revoke', 'ci-upload', '--yes', ...withPassword(owner)], env, owner.password);
  expect(revoke).toMatchObject({ code: 0, stdout: 'Revoked key "ci-upload".\n' });
  expect(await run(['whoami'], restricted)).toMatchObject({
    code: 3,
    stderr: expect.stringMatching(/ Run "latchkey login" .*\n$/),
  });
  const csv = (await run(['audit', '--csv', ...withPassword(owner)], env, owner.password)).stdout;
  expect(csv.split('\r\n').map((line) => line.split(',')[1])).toEqual(
    expect.arrayContaining(['action', 'application.created', 'file.uploaded', 'api_key.revoked']),
  );
});

it('without a terminal, login signs up, and apps prints results alone on standard output, without colours', async () => {
  const apps = (...args: string[]) => run(['apps', ...args], env);
  const result = (stdout: unknown, stderr = '') => ({ code: 0, stdout, stderr });
  const name = unique('ada-');
  const signUpArgs = ['login', '--sign-up', '--username', name, '--email', `${name}@example.com`, '--password-stdin'];
  expect(await run(signUpArgs, env, PASSWORD)).toEqual(
    result(expect.stringMatching(new RegExp(`^Signed in to ${baseUrl} as ${name}\\.\n`))),
  );
  expect(await apps('create', 'Difference Engine')).toEqual(
    result(expect.stringMatching(/^Created Difference Engine \([0-9a-f-]{36}\)\.\n$/)),
  );
  expect(await apps('pause', 'Difference Engine')).toEqual(result('Paused Difference Engine.\n'));
  const listed = await apps('list', '--json');
  expect([JSON.parse(listed.stdout), listed.stderr]).toMatchObject([[{ name: 'Difference Engine', status: 'paused' }], '']);
  const usage = /^DAY \(UTC\) +EVENTS +DOWNLOADS +UPLOADS +MOST CLIENTS\n20\d\d-\d\d-\d\d( +\d+){4}\n$/;
  expect(await apps('usage', 'Difference Engine', '--days', '1')).toEqual(
    result(expect.stringMatching(usage), 'Live clients now: 0\n'),
  );
});

it('files upload goes on after a failed file, replaces only what has changed, and download gets it', async () => {
  const owner = await signUp();
  const applicationId = await createApplication(owner.session);
  const keyEnv = { ...env, LATCHKEY_KEY: (await createKey(owner)).text };
  const [same, changed, empty] = ['same.txt', 'changed.txt', 'empty.txt'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const upload = (paths: readonly string[], ...options: string[]) =>
    run(['files', 'upload', ...paths, '--app', applicationId, ...options], keyEnv);
  for (const [path, text] of Object.entries({ [same]: 'same', [changed]: 'old', [empty]: '' })) await writeFile(path, text);

  const first = await upload([empty, same, changed]);
  expect(first.code).toBe(1);
  expect(first.stdout).toMatch(/^[0-9a-f]{64} {2}same\.txt\n[0-9a-f]{64} {2}changed\.txt\n$/);
  expect(first.stderr).toMatch(/^empty\.txt: failed: .*\n.*\n.*\n1 of 3 files failed\..*\n$/);
  await writeFile(changed, 'new');
  const idOfChanged = () => findFileId(owner.session, applicationId, 'changed.txt');
  const id = await idOfChanged();
  expect(await upload([changed])).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^The file name is taken\. .*\n$/),
  });
  const second = await upload([same, changed], '--replace');
  expect(second).toMatchObject({ code: 0, stderr: 'same.txt: unchanged, 4 B\nchanged.txt: replaced, 3 B\n' });
  expect(await idOfChanged()).toBe(id);
  const list = await run(['files', 'list', '--app', applicationId, '--json'], keyEnv);
  const names = JSON.parse(list.stdout).map(
    (file: { displayName: string; checksum: string }) => `${file.checksum}  ${file.displayName}`,
  );
  expect(names.sort()).toEqual(second.stdout.trim().split('\n').sort());

  const output = join(folder, 'downloaded.txt');
  const download = ['files', 'download', 'changed.txt', '--app', applicationId, '--output', output];
  expect(await run(download, keyEnv)).toMatchObject({ code: 0, stderr: 'changed.txt: downloaded, 3 B\n' });
  expect(await readFile(output, 'utf8')).toBe('new');
  expect(await run(download, keyEnv)).toMatchObject({ code: 2, stderr: expect.stringContaining('exists. Use --force') });
});
