import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { CLIENT_SECRET, sendJson, startTestIssuer, type TestIssuer } from '@latchkey/identity/testing/issuer.fixture';
import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { testRedis } from '@latchkey/testkit/redis';
import { beforeAll, expect, inject, it } from 'vitest';
import type { Answer } from '../testing/api.ts';
import { cookieOf, createApplication, createKey, type Owner, signUp, unique } from '../testing/caller.ts';
import { upload } from '../testing/files.ts';
import { SERVICE_CREDENTIAL, stopForLog } from '../testing/instance.ts';
import { type OwnInstance, startOwnInstance } from '../testing/own-instance.ts';
import { serviceProcessesOf } from '../testing/processes-on.ts';
import { formsOf, holdsCode, readDatabase, readRedis, recordRedis } from '../testing/secret-places.ts';
import { codeAt, signInTo } from '../testing/two-factor.ts';

const SECRET_KEY = unique('a secret key of the tests ');
const ACCOUNTS = fileURLToPath(new URL('../accounts-main.ts', import.meta.url));

/** Secrets by what they are; codes of six digits apart, as they may stand in other numbers. */
const secrets: Record<string, string | Buffer> = {
  secretKey: SECRET_KEY,
  serviceCredential: SERVICE_CREDENTIAL,
  clientSecret: CLIENT_SECRET,
};
const codes: string[] = [];
/** What names a person, and belongs into the database alone. */
const names: string[] = [];

function plant<T extends string>(name: string, secret: T): T {
  if (secret.length < 16) throw new Error(`${name} is too short to be looked for: ${secret}`);
  secrets[name] = secret;
  return secret;
}

const plantCode = (code: string) => {
  codes.push(code);
  return code;
};

/** The value of a cookie that an answer sets. */
function plantCookie(what: string, headers: Headers): string {
  for (const line of headers.getSetCookie()) {
    const [name = '', value = ''] = line.slice(0, line.indexOf(';')).split(/=(.*)/s);
    if (value !== '') plant(`${name} of ${what}`, decodeURIComponent(value));
  }
  return headers
    .getSetCookie()
    .map((line) => line.split(';', 1)[0])
    .join('; ');
}

function plantSession(what: string, answer: Answer): { cookie: string; csrfToken: string } {
  plantCookie(what, answer.headers);
  return { cookie: cookieOf(answer.headers), csrfToken: plant(`CSRF token of ${what}`, answer.data.csrfToken) };
}

async function usePasswordsAndKeys({ api }: OwnInstance): Promise<Owner> {
  const owner = await signUp(api);
  names.push(owner.email);
  plant('password', owner.password);
  plant('session token', owner.cookie.slice('session='.length));
  plant('CSRF token', owner.csrfToken);
  const wrongPassword = plant('wrong password', unique('a wrong password '));
  const unknownEmail = `${unique('nobody')}@example.com`;
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
  const keysOf = async () => (await key.api.get('/api/v1/panel/get-applications')).data[0].applicationApiKeys;
  const before = await keysOf();
  for (const type of ['socketKey', 'httpKey']) await key.api.patch('/api/v1/panel/update-api-keys', { type }, { applicationId });
  for (const [when, { socketKey, httpKey }] of Object.entries({ before, after: await keysOf() })) {
    plant(`socket key ${when}`, socketKey.slice('lk_sock_'.length));
    plant(`HTTP key ${when}`, httpKey.slice('lk_http_'.length));
  }
  await owner.session.post(`/api/v1/panel/api-keys/${key.id}/revoke`);
  return owner;
}

/** Switches the second factor on and leaves it so; answers the recovery codes that were not used. */
async function useTwoFactor({ api }: OwnInstance, owner: Owner): Promise<string[]> {
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
  const made = plant('recovery code that was made up', 'abcd-efgh-ijkl-mnop');
  const shown = [undefined, wrongCode, made, plantCode(codeAt(secret, nowMs + 30_000)), used];
  const statuses = [];
  for (const code of shown) {
    const answer = await signInTo(api, owner, code);
    statuses.push(answer.status);
    if (answer.status === 200) plantSession(`sign-in ${statuses.length}`, answer);
  }
  expect(statuses).toEqual([401, 400, 400, 200, 200]);
  const wrongPassword = secrets['wrong password'] as string;
  expect((await post('disable', { password: wrongPassword, code: wrongCode })).status).toBe(400);
  const applicationId = await createApplication(owner.session);
  const deletion = await owner.session.delete('/api/v1/panel/delete-application', { applicationId, code: other });
  expect(deletion.status).toBe(200);
  return left;
}

/** Signs in at the issuer as somebody new, and links an account that has a second factor. */
async function useOidc({ api, baseUrl }: OwnInstance, issuer: TestIssuer, owner: Owner, recoveryCodes: string[]): Promise<void> {
  const callback = (what: string, back: Record<string, string>, cookie: string) => {
    plant(`authorization code of ${what}`, back.code ?? '');
    return api.with({ cookie }).get('/api/v1/auth/oidc/callback', back, { mayFail: true });
  };
  /** Goes to the issuer and comes back. */
  const flow = async (what: string, sent: { url: string; headers: Headers }, more = '') => {
    const query = new URL(sent.url).searchParams;
    for (const name of ['state', 'nonce', 'code_challenge']) plant(`${name} of ${what}`, query.get(name) ?? '');
    const cookie = [plantCookie(what, sent.headers), more].filter(Boolean).join('; ');
    return callback(what, issuer.authorize(sent.url), cookie);
  };
  const start = async () => {
    const { status, headers } = await fetch(`${baseUrl}/api/v1/auth/oidc/start?issuer=test`, { redirect: 'manual' });
    expect(status).toBe(302);
    return { url: headers.get('location') ?? '', headers };
  };
  const name = unique('oidc');
  issuer.claims = { sub: unique(), preferred_username: name, email: `${name}@example.com`, email_verified: true };
  names.push(`${name}@example.com`);
  const signedIn = await flow('sign-up at the issuer', await start());
  expect(signedIn.status).toBe(200);
  plantSession('sign-up at the issuer', signedIn);

  // One that fails echoes what it was sent.
  issuer.answers['/token'] = (_req, res, body) => sendJson(res, 500, { error: 'server_error', error_description: body });
  expect((await flow('failed sign-in at the issuer', await start())).status).toBe(503);
  delete issuer.answers['/token'];
  const forged = { code: plant('made-up code', unique('code')), state: plant('made-up state', unique('state')), iss: issuer.url };
  const answer = await callback('a forged answer', forged, plantCookie('a forged answer', (await start()).headers));
  expect(answer.status).toBe(401);

  issuer.claims = { sub: unique() };
  const link = await owner.session.post('/api/v1/auth/oidc/link', {
    issuer: 'test',
    password: owner.password,
    code: recoveryCodes[0],
  });
  expect((await flow('link', { url: link.data.url, headers: link.headers }, owner.cookie)).status).toBe(200);
  const pending = await flow('sign-in with a second factor', await start());
  expect([pending.status, pending.code]).toEqual([401, 'two_factor_required']);
  const cookie = plantCookie('pending', pending.headers);
  const complete = (code: string) => api.with({ cookie }).post('/api/v1/auth/oidc/complete', { code });
  expect((await complete(codes[0] ?? '')).status).toBe(400);
  const completed = await complete(recoveryCodes[1] ?? '');
  expect(completed.status).toBe(200);
  plantSession('complete', completed);
  for (const [i, sent] of issuer.redeemed.entries()) {
    for (const part of ['code_verifier', 'access_token', 'refresh_token', 'id_token']) plant(`${part} ${i}`, sent[part] ?? '');
    plant(`signature of id_token ${i}`, (sent.id_token ?? '').split('.')[2] ?? '');
  }
}

/** Gives the account passwords as an operator does. */
async function useCommands(owner: Owner, env: Record<string, string>): Promise<void> {
  const run = async (input: string, ...args: string[]) => {
    const child = spawn(process.execPath, [ACCOUNTS, ...args], { env: { ...env, LOG_LEVEL: 'trace' } });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    child.stdin.end(input);
    const [code] = await once(child, 'close');
    expect(code, output).toBe(0);
    return output;
  };
  const output = await run(plant("operator's password", unique('a new password ')), 'reset-password', owner.email);
  expect(output).not.toContain(secrets["operator's password"]);
  const { password } = JSON.parse(await run('', 'reset-password', owner.email, '--generate', '--json'));
  plant('generated password', password);
}

/** The environment of each process that a service has of its own. */
async function readEnvironments({ pid }: OwnInstance): Promise<Record<string, string>> {
  const read = ([name, child]: [string, number]) =>
    readFile(`/proc/${child}/environ`, 'utf8').then((text) => [name, text] as const);
  return Object.fromEntries(await Promise.all(serviceProcessesOf(pid).map(read)));
}

const AUDIT = ['identity.audit_entry', 'apps.audit_entry', 'files.audit_entry'];

let environments: Record<string, string> = {};
let places: Record<'log' | 'redis' | 'commands' | 'database', string>;
beforeAll(async () => {
  const database = await createEmptyTestDatabase();
  const { url: redisUrl } = await testRedis();
  const issuer = await startTestIssuer();
  const env = { LOG_LEVEL: 'trace', SECRET_KEY, ...issuer.env() };
  const instance = await startOwnInstance({ databaseUrl: database.url, redisUrl, env });
  const commands = await recordRedis(redisUrl);
  try {
    const owner = await usePasswordsAndKeys(instance);
    await useOidc(instance, issuer, owner, await useTwoFactor(instance, owner));
    names.push(owner.username);
    if (process.platform === 'linux') environments = await readEnvironments(instance);
    await useCommands(owner, { DATABASE_URL: database.url, REDIS_URL: redisUrl, SECRET_KEY });
    places = {
      redis: await readRedis(redisUrl),
      commands: commands.text(),
      database: await readDatabase(database.url),
      log: await stopForLog(instance),
    };
  } finally {
    commands.stop();
    await instance.stop();
    await issuer.stop();
    await database.drop();
  }
});

it('what is searched is all there is', () => {
  expect(places.log).toContain('"msg":"request"');
  expect(places.redis).toContain('latchkey:limit:');
  expect(places.commands).toContain('latchkey:epoch:session:');
  for (const stored of ['a-file', ...names.filter((name) => !name.startsWith('nobody'))])
    expect(places.database).toContain(stored);
  for (const table of [
    'identity.account',
    'identity.two_factor',
    'identity.recovery_code',
    'apps.application',
    'files.file',
    ...AUDIT,
  ]) {
    expect(places.database).toContain(table);
  }
  expect(Object.keys(secrets).length).toBeGreaterThan(80);
});

it('no secret stands in a log, in Redis or what it is told, or, as it is, in the database', () => {
  for (const [place, text] of Object.entries(places)) {
    const found = Object.entries(secrets).filter(([, secret]) => formsOf(secret).some((form) => text.includes(form)));
    expect(
      found.map(([name]) => name),
      place,
    ).toEqual([]);
    expect(
      codes.filter((code) => holdsCode(text, code)),
      place,
    ).toEqual([]);
  }
});

it('no hash that a session is found by stands outside of the database', () => {
  const tokens = Object.entries(secrets).filter(([name]) => name.startsWith('session'));
  expect(tokens.length).toBeGreaterThanOrEqual(4);
  const hashes = tokens.map(([, token]) => createHash('sha256').update(token).digest());
  expect(hashes.some((hash) => places.database.includes(hash.toString('hex')))).toBe(true);
  for (const place of ['log', 'redis', 'commands'] as const) {
    expect(
      hashes.filter((hash) => formsOf(hash).some((form) => places[place].includes(form))),
      place,
    ).toEqual([]);
  }
});

it('nothing that names a person stands where it is not needed', () => {
  for (const place of ['log', 'redis', 'commands'] as const) {
    expect(
      names.filter((name) => places[place].toLowerCase().includes(name.toLowerCase())),
      place,
    ).toEqual([]);
  }
});

it('no service is told a secret of another', () => {
  const { shape } = inject('latchkeyInstance');
  const known = (secret: string) => Object.keys(environments).filter((name) => environments[name]?.includes(secret));
  const deployed = shape === 'deployed' && process.platform === 'linux';
  expect(known(CLIENT_SECRET)).toEqual(deployed ? ['identity'] : []);
  expect(known('SECRET_KEY=').sort()).toEqual(deployed ? ['apps', 'files', 'identity'] : []);
});
