import { createEmptyTestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { withClient } from '@latchkey/testkit/with-client';
import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import { cookieOf, createApplication, createKey, signUp, unique } from '../testing/caller.ts';
import { upload } from '../testing/files.ts';
import { findLogLines, SERVICE_CREDENTIAL } from '../testing/instance.ts';
import { startOwnInstance } from '../testing/own-instance.ts';
import { signInTo, signUpGuarded } from '../testing/two-factor.ts';

/** All that stands in a database, byte strings as hex. */
function readDatabase(url: string): Promise<string> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ name: string }>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname IN ('identity', 'apps', 'files')`,
    );
    const tables = [];
    for (const { name } of rows) tables.push((await client.query(`SELECT row_to_json(t)::text AS row FROM ${name} t`)).rows);
    return JSON.stringify(tables);
  });
}

/** All that stands in a Redis. */
async function readRedis(url: string): Promise<string> {
  const redis = new Redis(url);
  try {
    const keys = await redis.keys('*');
    return JSON.stringify(await Promise.all(keys.map(async (key) => [key, await readValue(redis, key)])));
  } finally {
    redis.disconnect();
  }
}

/** A value of whatever kind; queues have some of each. */
async function readValue(redis: Redis, key: string): Promise<unknown> {
  switch (await redis.type(key)) {
    case 'hash':
      return redis.hgetall(key);
    case 'list':
      return redis.lrange(key, 0, -1);
    case 'set':
      return redis.smembers(key);
    case 'zset':
      return redis.zrange(key, '0', '-1');
    case 'stream':
      return redis.xrange(key, '-', '+');
    case 'none':
      return undefined;
    default:
      return redis.get(key);
  }
}

it('no password, key, session or token stands in a log, in Redis or, as it is, in the database', async () => {
  const database = await createEmptyTestDatabase();
  onTestFinished(() => database.drop());
  const { url: redisUrl } = await testRedis();
  const instance = await startOwnInstance({ databaseUrl: database.url, redisUrl, env: { LOG_LEVEL: 'trace' } });
  onTestFinished(() => instance.stop(), 60_000);

  const owner = await signUp(instance.api);
  const wrongPassword = unique('a wrong password ');
  await instance.api.post('/api/v1/auth/sign-in', { email: owner.email, password: wrongPassword });
  const unknownEmail = `${unique('nobody')}@example.com`;
  await instance.api.post('/api/v1/auth/sign-in', { email: unknownEmail, password: wrongPassword });
  const key = await createKey(owner);
  const guarded = await signUpGuarded(instance.api);
  const [usedRecoveryCode = ''] = guarded.recoveryCodes;
  await signInTo(instance.api, guarded, guarded.wrongCode());
  const guardedSession = cookieOf((await signInTo(instance.api, guarded, usedRecoveryCode)).headers);
  const pending = (await owner.session.post('/api/v1/auth/two-factor/set-up')).data.secret;
  const wrongRecoveryCode = 'zyxw-vuts-rqpo-nmlk';
  await signInTo(instance.api, guarded, wrongRecoveryCode);
  await instance.api
    .with({ cookie: guardedSession })
    .post('/api/v1/auth/sign-in', { email: owner.email, password: owner.password });
  const applicationId = await createApplication(key.api);
  expect((await upload(key.api, applicationId, 'a-file')).status).toBe(200);
  const wrongKey = `lk_mgmt_${unique()}_${unique()}`;
  await instance.api.with({ authorization: `Bearer ${wrongKey}` }).get('/api/v1/panel/get-applications');
  await instance.api.post('/api/v1/auth/sign-in', `{"password":"${wrongPassword}`);
  await instance.api.get(`/${wrongKey}`, { applicationId: wrongKey });
  const applications = (await key.api.get('/api/v1/panel/get-applications')).data;
  const { socketKey, httpKey } = applications[0].applicationApiKeys;
  const last = await instance.api.get('/nowhere');
  await eventually(async () => (await findLogLines(instance.logDir, last.headers.get('x-request-id') ?? '')).length > 0);

  const places = {
    log: (await findLogLines(instance.logDir, '')).join('\n'),
    redis: await readRedis(redisUrl),
    database: await readDatabase(database.url),
  };
  expect(places.log).toContain('"msg":"request"');
  for (const kept of ['latchkey:limit:', 'latchkey:known-networks:']) expect(places.redis).toContain(kept);
  for (const stored of [owner.username, 'a-file']) expect(places.database).toContain(stored);
  const secrets = {
    password: owner.password,
    wrongPassword,
    key: key.text,
    keySecret: key.text.slice(-48),
    wrongKey,
    session: owner.cookie.slice('session='.length),
    csrfToken: owner.csrfToken,
    socketKey: socketKey.slice('lk_sock_'.length),
    httpKey: httpKey.slice('lk_http_'.length),
    serviceCredential: SERVICE_CREDENTIAL,
    guardedSession: guardedSession.slice('session='.length),
    twoFactorSecret: guarded.secret,
    pendingTwoFactorSecret: pending,
    wrongRecoveryCode,
    ...Object.fromEntries(guarded.recoveryCodes.map((code, i) => [`recoveryCode${i}`, code])),
    ...Object.fromEntries(
      guarded.recoveryCodes.map((code, i) => [`bareRecoveryCode${i}`, code.replaceAll('-', '').toUpperCase()]),
    ),
  };
  // Six digits alone are in many a number.
  for (const [place, text] of Object.entries(places)) {
    expect(text, `code in ${place}`).not.toMatch(new RegExp(`"(${guarded.usedCode}|${guarded.wrongCode()})"`));
  }
  for (const [place, text] of Object.entries(places)) {
    for (const [name, secret] of Object.entries(secrets)) {
      const forms = [
        secret,
        Buffer.from(secret).toString('hex'),
        Buffer.from(secret).toString('base64'),
        encodeURIComponent(secret),
      ];
      for (const form of forms) expect(text.includes(form), `${name} in ${place}`).toBe(false);
    }
  }
  // Nor does anything that names a person stand where it is not needed.
  for (const text of [places.log, places.redis]) {
    for (const name of [owner.email, guarded.email, unknownEmail])
      expect(text.toLowerCase().includes(name.toLowerCase()), name).toBe(false);
  }
});
