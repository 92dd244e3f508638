import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { CLIENT_SECRET, sendJson, startTestIssuer, type TestIssuer } from '@latchkey/identity/testing/issuer';
import { MAIL_USER, startMailServer, type TestMailServer } from '@latchkey/identity/testing/mail-server';
import { createEmptyTestDatabase } from '@latchkey/testkit/postgres/database';
import { testRedis } from '@latchkey/testkit/redis/redis';
import { beforeAll, expect, it } from 'vitest';
import type { Answer } from '../client/api.ts';
import { createApplication, createKey, type Owner, signUp, unique } from '../client/caller.ts';
import { upload } from '../client/files.ts';
import { codeAt, signInTo } from '../client/two-factor.ts';
import { type DedicatedInstance, startDedicatedInstance } from '../instance/dedicated-instance.ts';
import { SERVICE_CREDENTIAL, stopForLog } from '../instance/instance.ts';
import { findServiceProcesses } from '../instance/running-processes.ts';
import { formsOf, holdsCode, readDatabase, readRedis, recordRedis } from '../instance/secret-sources.ts';

/** S3: uses every secret, then searches logs, Redis and the database for each. */
const SECRET_KEY = unique('a secret key of the tests ');

/** Secrets by name; codes of six digits apart, as they may be part of other numbers. */
const secrets: Record<string, string> = {
  secretKey: SECRET_KEY,
  serviceCredential: SERVICE_CREDENTIAL,
  clientSecret: CLIENT_SECRET,
  mailPassword: MAIL_USER.pass,
};
const codes: string[] = [];
/** Names of persons, which only the database may hold. */
const names: string[] = [];

function plant(name: string, secret: string): string {
  if (secret.length < 16) throw new Error(`${name} is too short to be searched for: ${secret}`);
  secrets[name] = secret;
  return secret;
}

const plantCode = (code: string) => {
  codes.push(code);
  return code;
};

/** Plants the cookies that a response sets; returns them as a client sends them. */
function plantCookies(what: string, headers: Headers): string {
  const pairs = headers.getSetCookie().map((line) => line.split(';', 1)[0] ?? '');
  for (const pair of pairs) {
    const [name = '', value = ''] = pair.split(/=(.*)/s);
    if (value !== '') plant(`${name} of ${what}`, decodeURIComponent(value));
  }
  return pairs.join('; ');
}

function plantSession(what: string, answer: Answer): void {
  plantCookies(what, answer.headers);
  plant(`CSRF token of ${what}`, answer.data.csrfToken);
}

async function usePasswordsAndKeys({ api }: DedicatedInstance): Promise<Owner> {
  const owner = await signUp(api);
  names.push(owner.email);
  plant('password', owner.password);
  plant('session token', owner.cookie.slice('session='.length));
  plant('CSRF token', owner.csrfToken);
  const wrongPassword = plant('wrong password', unique('a wrong password '));
  const unknownEmail = `${unique('unknown')}@example.com`;
  names.push(unknownEmail);
  for (const email of [owner.email, unknownEmail]) await api.post('/api/v1/auth/sign-in', { email, password: wrongPassword });
  await api.post('/api/v1/auth/sign-in', `{"password":"${wrongPassword}`);
  const key = await createKey(owner);
  plant('management key', key.text);
  plant("management key's secret", key.text.slice(-48));
  const applicationId = await createApplication(key.api);
  expect((await upload(key.api, applicationId, 'a-file')).status).toBe(200);
  const wrongKey = plant('wrong key', `lk_mgmt_${unique()}_${unique()}`);
  await api.with({ authorization: `Bearer ${wrongKey}` }).get('/api/v1/panel/get-applications');
  await api.get(`/${wrongKey}`, { applicationId: wrongKey });
  await api.with({ cookie: `session=${plant('made-up session', unique('a'.repeat(27)))}` }).get('/api/v1/auth/session');
  const plantRuntimeKeys = async (when: string) => {
    const { socketKey, httpKey } = (await key.api.get('/api/v1/panel/get-applications')).data[0].applicationApiKeys;
    plant(`socket key ${when}`, socketKey.slice('lk_sock_'.length));
    plant(`HTTP key ${when}`, httpKey.slice('lk_http_'.length));
  };
  await plantRuntimeKeys('before');
  for (const type of ['socketKey', 'httpKey']) await key.api.patch('/api/v1/panel/update-api-keys', { type }, { applicationId });
  await plantRuntimeKeys('after');
  await owner.session.post(`/api/v1/panel/api-keys/${key.id}/revoke`);
  return owner;
}

/** Turns the second factor on; returns the recovery codes that were not used. */
async function useTwoFactor({ api }: DedicatedInstance, owner: Owner): Promise<string[]> {
  const post = (path: string, body: object | null = null) => owner.session.post(`/api/v1/auth/two-factor/${path}`, body);
  plant('TOTP secret that was not enabled', (await post('set-up')).data.secret);
  const { secret, otpauthUrl } = (await post('set-up')).data;
  plant('TOTP secret', secret);
  plant('otpauth URL', otpauthUrl);
  const nowMs = Date.now();
  const wrongCode = plantCode(codeAt(secret, nowMs + 3_600_000));
  expect((await post('enable', { code: wrongCode })).status).toBe(400);
  const enabled = await post('enable', { code: plantCode(codeAt(secret, nowMs)) });
  const recoveryCodes: string[] = enabled.data.recoveryCodes;
  for (const [i, code] of recoveryCodes.entries()) {
    plant(`recovery code ${i}`, code);
    plant(`recovery code ${i} without dashes`, code.replaceAll('-', '').toUpperCase());
  }
  const [used = '', other = '', ...left] = recoveryCodes;
  const madeUp = plant('made-up recovery code', 'abcd-efgh-ijkl-mnop');
  const shown = [undefined, wrongCode, madeUp, plantCode(codeAt(secret, nowMs + 30_000)), used];
  const statuses = [];
  for (const code of shown) {
    const answer = await signInTo(api, owner, code);
    statuses.push(answer.status);
    if (answer.status === 200) plantSession(`sign-in ${statuses.length}`, answer);
  }
  expect(statuses).toEqual([401, 400, 400, 200, 200]);
  expect((await post('disable', { password: secrets['wrong password'], code: wrongCode })).status).toBe(400);
  const applicationId = await createApplication(owner.session);
  expect((await owner.session.delete('/api/v1/panel/delete-application', { applicationId, code: other })).status).toBe(200);
  return left;
}

/** Signs in at the issuer with a new account, and links an account that has a second factor. */
async function useOidc(
  { api, baseUrl }: DedicatedInstance,
  issuer: TestIssuer,
  owner: Owner,
  recoveryCodes: string[],
): Promise<void> {
  const comeBack = (what: string, back: Record<string, string>, cookie: string) => {
    plant(`authorization code of ${what}`, back.code ?? '');
    return api.with({ cookie }).get('/api/v1/auth/oidc/callback', back, { mayFail: true });
  };
  /** Goes to the issuer and comes back. */
  const visit = (what: string, url: string, headers: Headers, session?: string) => {
    const query = new URL(url).searchParams;
    for (const name of ['state', 'nonce', 'code_challenge']) plant(`${name} of ${what}`, query.get(name) ?? '');
    const cookies = [plantCookies(what, headers), session].filter(Boolean);
    return comeBack(what, issuer.authorize(url), cookies.join('; '));
  };
  const start = async () => (await fetch(`${baseUrl}/api/v1/auth/oidc/start?issuer=test`, { redirect: 'manual' })).headers;
  const signIn = async (what: string) => {
    const headers = await start();
    return visit(what, headers.get('location') ?? '', headers);
  };
  const name = unique('oidc');
  issuer.claims = { sub: unique(), preferred_username: name, email: `${name}@example.com`, email_verified: true };
  names.push(`${name}@example.com`);
  const signedIn = await signIn('sign-up at the issuer');
  expect(signedIn.status).toBe(200);
  plantSession('sign-up at the issuer', signedIn);

  // An issuer that fails echoes what it was sent.
  issuer.answers['/token'] = (_req, res, body) => sendJson(res, 500, { error: 'server_error', error_description: body });
  expect((await signIn('failed sign-in at the issuer')).status).toBe(503);
  delete issuer.answers['/token'];
  const forged = { code: unique('code-that-is-made-up'), state: plant('made-up state', unique('state')), iss: issuer.url };
  expect((await comeBack('a forged response', forged, plantCookies('a forged response', await start()))).status).toBe(401);

  issuer.claims = { sub: unique() };
  const proof = { issuer: 'test', password: owner.password, code: recoveryCodes[0] };
  const link = await owner.session.post('/api/v1/auth/oidc/link', proof);
  expect((await visit('link', link.data.url, link.headers, owner.cookie)).status).toBe(200);
  const pending = await signIn('sign-in with a second factor');
  expect([pending.status, pending.code]).toEqual([401, 'two_factor_required']);
  const cookie = plantCookies('pending', pending.headers);
  const complete = (code: string | undefined) => api.with({ cookie }).post('/api/v1/auth/oidc/complete', { code });
  expect((await complete(codes[0])).status).toBe(400);
  plantSession('complete', await complete(recoveryCodes[1]));
  for (const [i, sent] of issuer.redeemed.entries()) {
    for (const part of ['code_verifier', 'access_token', 'refresh_token', 'id_token']) plant(`${part} ${i}`, sent[part] ?? '');
    plant(`signature of id_token ${i}`, (sent.id_token ?? '').split('.')[2] ?? '');
  }
}

/** Changes the email and resets the password by mail, after a failure of the mail server. */
async function useMails({ api }: DedicatedInstance, server: TestMailServer, owner: Owner, code = ''): Promise<void> {
  const email = `${unique('new')}@example.com`;
  names.push(email);
  server.control.failures.push(451);
  const changed = await owner.session.post('/api/v1/auth/email/change', { email, password: owner.password, code });
  expect(changed.status, changed.text).toBe(200);
  const [confirmation] = await server.waitForMails(email);
  plant('token of a new email', confirmation?.token ?? '');
  expect((await api.post('/api/v1/auth/password/forgot', { email: owner.email })).status).toBe(200);
  const mails = await server.waitForMails(owner.email, 2);
  const token = plant('token of a reset', mails.find((mail) => mail.token !== '')?.token ?? '');
  const newPassword = plant('password of a reset', unique('a reset password '));
  expect((await api.post('/api/v1/auth/password/reset', { token, newPassword })).status).toBe(200);
}

const environments = new Map<string, string>();
let sources: Record<'log' | 'redis' | 'commands' | 'database', string>;
beforeAll(async () => {
  const database = await createEmptyTestDatabase();
  const { url: redisUrl } = await testRedis();
  const [issuer, mailServer] = await Promise.all([startTestIssuer(), startMailServer()]);
  const env = { LOG_LEVEL: 'trace', SECRET_KEY, ...issuer.env(), ...mailServer.env };
  const instance = await startDedicatedInstance({ databaseUrl: database.url, redisUrl, env });
  const commands = await recordRedis(redisUrl);
  try {
    const owner = await usePasswordsAndKeys(instance);
    const recoveryCodes = await useTwoFactor(instance, owner);
    await useOidc(instance, issuer, owner, recoveryCodes);
    await useMails(instance, mailServer, owner, recoveryCodes[2]);
    names.push(owner.username);
    const processes = process.platform === 'linux' ? findServiceProcesses(instance.pid) : [];
    for (const [name, pid] of processes) environments.set(name, await readFile(`/proc/${pid}/environ`, 'utf8'));
    const [redis, stored] = [await readRedis(redisUrl), await readDatabase(database.url)];
    sources = { redis, commands: commands.text(), database: stored, log: await stopForLog(instance) };
  } finally {
    commands.stop();
    await instance.stop();
    await Promise.all([issuer.stop(), mailServer.stop()]);
    await database.drop();
  }
});

it('the search covers everything', () => {
  const stored = ['identity.account', 'identity.two_factor', 'apps.application', 'files.audit_entry', 'a-file'];
  for (const text of [...stored, ...names.filter((name) => !name.startsWith('unknown'))])
    expect(sources.database).toContain(text);
  expect(sources.log).toContain('"msg":"request"');
  expect(sources.redis).toContain('latchkey:limit:');
  expect(sources.commands).toContain('latchkey:epoch:session:');
  expect(Object.keys(secrets).length).toBeGreaterThan(80);
});

it('no secret is in a log, in Redis or its commands, or unencrypted in the database', () => {
  for (const [source, text] of Object.entries(sources)) {
    const found = Object.keys(secrets).filter((name) => formsOf(secrets[name] ?? '').some((form) => text.includes(form)));
    expect([source, ...found, ...codes.filter((code) => holdsCode(text, code))]).toEqual([source]);
  }
});

it('only the database holds hashes of session tokens and names of persons', () => {
  const tokens = Object.entries(secrets).filter(([name]) => name.startsWith('session'));
  expect(tokens.length).toBeGreaterThanOrEqual(4);
  const hashes = tokens.map(([, token]) => createHash('sha256').update(token).digest());
  expect(hashes.some((hash) => sources.database.includes(hash.toString('hex')))).toBe(true);
  for (const source of ['log', 'redis', 'commands'] as const) {
    expect(hashes.filter((hash) => formsOf(hash).some((form) => sources[source].includes(form)))).toEqual([]);
    const text = sources[source].toLowerCase();
    expect([source, ...names.filter((name) => text.includes(name.toLowerCase()))]).toEqual([source]);
  }
});

it('no service gets a secret of another', () => {
  const isDeployed = environments.size > 0;
  const knownTo = (secret: string) => [...environments].flatMap(([name, text]) => (text.includes(secret) ? [name] : [])).sort();
  for (const secret of [CLIENT_SECRET, MAIL_USER.pass]) expect(knownTo(secret)).toEqual(isDeployed ? ['identity'] : []);
  expect(knownTo('SECRET_KEY=')).toEqual(isDeployed ? ['apps', 'files', 'identity'] : []);
});
