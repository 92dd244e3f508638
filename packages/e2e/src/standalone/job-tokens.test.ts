import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { run } from '@latchkey/cli/testing/run';
import { Latchkey } from '@latchkey/client';
import { beforeAll, beforeEach, expect, inject, it, onTestFinished } from 'vitest';
import { createApplication, type Owner, signUp, unique } from '../client/caller.ts';
import { createOfflineIssuer, type OfflineIssuer } from '../client/token.ts';
import { signUpGuarded } from '../client/two-factor.ts';
import { createDataDir } from '../instance/launcher-process.ts';

const { baseUrl } = inject('latchkeyInstance');
const ISSUER = 'https://ci.example';
let issuer: OfflineIssuer;
let owner: Owner;
let application: string;
let folder: string;
let env: NodeJS.ProcessEnv;
let sub: string;
beforeAll(async () => {
  [issuer, owner, application] = [await createOfflineIssuer(), await signUp(), unique('app-')];
  await createApplication(owner.session, application);
});
beforeEach(async () => {
  const { path, remove } = await createDataDir();
  onTestFinished(remove);
  [folder, env, sub] = [path, { XDG_CONFIG_HOME: path, LATCHKEY_URL: `${baseUrl}/` }, unique('job-')];
});

const add = async ({ email, password }: Owner, ...more: string[]) => {
  const jwks = join(folder, 'jwks.json');
  await writeFile(jwks, JSON.stringify(issuer.jwks));
  const tokens = ['--issuer', ISSUER, '--jwks', jwks, '--claim', `sub=${sub}`, '--claim', 'ref=main'];
  const rights = ['--scopes', 'applications:read', '--all-apps', '--email', email, '--password-stdin'];
  return run(['trusted-issuers', 'add', 'Jobs of CI', ...tokens, ...rights, '--json', ...more], env, password);
};
const sign = (aud: string) => issuer.sign({ iss: ISSUER, aud, sub, ref: 'main' });
const listApps = (job: NodeJS.ProcessEnv) => run(['apps', 'list', '--json'], { ...env, ...job });

/** The endpoint of GitHub Actions from which a job gets its token. */
async function startGitHub() {
  const server = createServer((req, res) => {
    const audience = new URL(req.url ?? '', 'http://localhost').searchParams.get('audience') ?? '';
    const isAllowed = req.headers.authorization === 'Bearer of the job';
    void sign(audience).then((value) => res.writeHead(isAllowed ? 200 : 401).end(JSON.stringify({ value })));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/token?api-version=2.0`;
  return { ACTIONS_ID_TOKEN_REQUEST_URL: url, ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'of the job' };
}

it('a job of GitHub Actions needs no key: its token has the URL of the server as audience', async () => {
  const added = await add(owner);
  expect(added).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(added.stdout)).toMatchObject({ audience: baseUrl, claims: { sub, ref: 'main' }, lifetimeSeconds: 600 });
  const github = await startGitHub();
  const listed = await listApps(github);
  expect(listed).toMatchObject({ code: 0, stdout: expect.stringContaining(application) });
  const whoami = await run(['whoami'], { ...env, ...github });
  expect(whoami.stdout).toMatch(/^From +the token of this job$/m);
  expect(await listApps({ ...github, ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'wrong' })).toMatchObject({
    code: 1,
    stderr: 'GitHub Actions gave no token for this job (HTTP 401). Run it again.\n',
  });
  expect(await listApps({ ...github, LATCHKEY_AUDIENCE: 'another' })).toMatchObject({
    code: 3,
    stderr: expect.stringMatching(/^The token of this job was not exchanged for a key: No trusted issuer accepts this token\./),
  });
});

it('a job has its token in a file, as on Kubernetes, or in a variable, as on GitLab', async () => {
  const audience = 'latchkey';
  await add(owner, '--audience', audience);
  const file = join(folder, 'token');
  await writeFile(file, `${await sign(audience)}\n`);
  expect(await listApps({ LATCHKEY_TOKEN_FILE: file })).toMatchObject({ code: 0, stderr: '' });
  expect(await listApps({ LATCHKEY_ID_TOKEN: await sign(audience) })).toMatchObject({ code: 0, stderr: '' });
  const used = await sign(audience);
  await listApps({ LATCHKEY_ID_TOKEN: used });
  expect(await listApps({ LATCHKEY_ID_TOKEN: used })).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('exchanged before'),
  });
});

it('LATCHKEY_TRUSTED_ISSUER chooses between accounts that trust the same token', async () => {
  const other = await signUp();
  const [first] = [JSON.parse((await add(owner)).stdout), await add(other)];
  expect(await listApps({ LATCHKEY_ID_TOKEN: await sign(baseUrl) })).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('Several trusted issuers accept this token'),
  });
  const chosen = await listApps({ LATCHKEY_ID_TOKEN: await sign(baseUrl), LATCHKEY_TRUSTED_ISSUER: first.id });
  expect(chosen).toMatchObject({ code: 0, stdout: expect.stringContaining(application) });
});

it('the command lists and removes trusted issuers', async () => {
  const { session, ...fresh } = await signUp();
  const { id } = JSON.parse((await add({ session, ...fresh })).stdout);
  const as = ['--email', fresh.email, '--password-stdin'];
  const list = () => run(['trusted-issuers', 'list', ...as], env, fresh.password);
  expect((await list()).stdout).toMatch(new RegExp(`^Jobs of CI +${ISSUER} +sub=${sub} ref=main +${id}$`, 'm'));
  const removed = await run(['trusted-issuers', 'remove', 'Jobs of CI', '--yes', ...as], env, fresh.password);
  expect(removed).toMatchObject({ code: 0, stdout: '"Jobs of CI" is no longer trusted.\n' });
  expect((await session.get('/api/v1/panel/trusted-issuers')).data).toEqual([]);
});

it('without a terminal, an account with a second factor gets an error that says so', async () => {
  const guarded = await signUpGuarded();
  const added = await add({ ...guarded, password: `${guarded.password}\n${guarded.nextCode()}` });
  expect(added).toMatchObject({ code: 2, stderr: expect.stringContaining('There is no terminal to ask for another code') });
});

it('the client exchanges a token, and names the error of the token route', async () => {
  await add(owner);
  const { trustedIssuers } = new Latchkey({ url: baseUrl });
  const exchanged = await trustedIssuers.exchange(await sign(baseUrl), { audience: baseUrl });
  expect(exchanged).toEqual({ key: expect.stringMatching(/^lk_mgmt_/), expiresInSeconds: 600, scopes: ['applications:read'] });
  const { name } = (await new Latchkey({ url: baseUrl, key: exchanged.key }).applications.list())[0] ?? {};
  expect(name).toBe(application);
  await expect(trustedIssuers.exchange('x')).rejects.toMatchObject({ code: 'invalid_request', status: 400 });
});
