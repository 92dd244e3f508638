import { randomBytes } from 'node:crypto';
import { eventually } from '@latchkey/testkit/eventually';
import { startS3Server } from '@latchkey/testkit/s3-server';
import { withClient } from '@latchkey/testkit/with-client';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { runStep } from './compose/run-step.ts';

const secret = () => randomBytes(16).toString('hex');

/** A database of its own, and roles that no other test has. */
async function newDatabase() {
  const { postgresUrl } = inject('latchkeyTestServers');
  const suffix = randomBytes(6).toString('hex');
  const name = `test_deploy_${suffix}`;
  await withClient(postgresUrl, (client) => client.query(`CREATE DATABASE ${name}`));
  onTestFinished(() =>
    withClient(postgresUrl, async (client) => {
      await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      for (const service of ['apps', 'files', 'identity']) await client.query(`DROP ROLE IF EXISTS "${service}_${suffix}"`);
    }),
  );
  const urlOf = (user: string, password: string) => {
    const url = new URL(postgresUrl);
    return Object.assign(url, { pathname: name, username: user, password: encodeURIComponent(password) }).href;
  };
  const admin = Object.assign(new URL(postgresUrl), { pathname: name }).href;
  return { admin, urlOf: (service: string, password = secret()) => urlOf(`${service}_${suffix}`, password) };
}

describe('the step that makes database roles', () => {
  it('gives each service a schema that it may fill, and no other', async () => {
    const { admin, urlOf } = await newDatabase();
    const urls = { apps: urlOf('apps'), files: urlOf('files', 'it\'s "odd" 100%'), identity: urlOf('identity') };
    const env = {
      ADMIN_DATABASE_URL: admin,
      APPS_DATABASE_URL: urls.apps,
      FILES_DATABASE_URL: urls.files,
      IDENTITY_DATABASE_URL: urls.identity,
    };
    expect(await runStep('database-roles', env)).toMatchObject({
      code: 0,
      output: 'There are roles for apps, files, identity.\n',
    });
    for (const [service, url] of Object.entries(urls)) {
      await withClient(url, async (client) => {
        await client.query(`CREATE TABLE mine (id int); INSERT INTO ${service}.mine VALUES (1)`);
        for (const other of Object.keys(urls).filter((name) => name !== service)) {
          await expect(client.query(`CREATE TABLE ${other}.theirs (id int)`)).rejects.toMatchObject({ code: '42501' });
        }
        await expect(client.query('CREATE TABLE public.anyones (id int)')).rejects.toMatchObject({ code: '42501' });
        await expect(client.query('CREATE ROLE another')).rejects.toMatchObject({ code: '42501' });
      });
    }
  });

  it('waits for another that is at it', async () => {
    const { admin, urlOf } = await newDatabase();
    const env = { ADMIN_DATABASE_URL: admin, APPS_DATABASE_URL: urlOf('apps'), FILES_DATABASE_URL: urlOf('files') };
    const ended = await withClient(admin, async (client) => {
      await client.query(`SELECT pg_advisory_lock(hashtext('latchkey database roles'))`);
      const step = runStep('database-roles', { ...env, IDENTITY_DATABASE_URL: urlOf('identity') });
      const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'`;
      await eventually(async () => (await client.query(waiting)).rowCount === 1, { timeoutMs: 15_000 });
      await client.query(`SELECT pg_advisory_unlock(hashtext('latchkey database roles'))`);
      return step;
    });
    expect(ended).toMatchObject({ code: 0, errors: '' });
  });

  it('can be run again, and changes passwords that have changed', async () => {
    const { admin, urlOf } = await newDatabase();
    const env = { ADMIN_DATABASE_URL: admin, FILES_DATABASE_URL: urlOf('files'), IDENTITY_DATABASE_URL: urlOf('identity') };
    const first = { ...env, APPS_DATABASE_URL: urlOf('apps') };
    expect(await runStep('database-roles', first)).toMatchObject({ code: 0, errors: '' });
    await withClient(first.APPS_DATABASE_URL, (client) => client.query('CREATE TABLE kept (id int)'));
    const second = { ...env, APPS_DATABASE_URL: urlOf('apps') };
    expect(await runStep('database-roles', second)).toMatchObject({ code: 0 });
    await withClient(second.APPS_DATABASE_URL, (client) => client.query('SELECT * FROM kept'));
    await expect(withClient(first.APPS_DATABASE_URL, (client) => client.query('SELECT 1'))).rejects.toMatchObject({
      code: '28P01',
    });
  });

  it('ends with a line of the log where it can’t use the database', async () => {
    const { urlOf } = await newDatabase();
    const { code, output, errors } = await runStep('database-roles', {
      ADMIN_DATABASE_URL: urlOf('nobody', 'wrong-password'),
      APPS_DATABASE_URL: urlOf('apps'),
      FILES_DATABASE_URL: urlOf('files'),
      IDENTITY_DATABASE_URL: urlOf('identity'),
    });
    expect({ code, errors }).toEqual({ code: 1, errors: '' });
    expect(JSON.parse(output)).toMatchObject({ level: 60, msg: 'the roles could not be made', err: { code: '28P01' } });
    expect(output).not.toContain('wrong-password');
  });

  it('names every setting that is wrong, and none of their values', async () => {
    const { code, errors } = await runStep('database-roles', {
      ADMIN_DATABASE_URL: 'postgres://nobody:@127.0.0.1:1/x',
      APPS_DATABASE_URL: 'postgres://apps:100%@127.0.0.1:1/x',
    });
    expect(code).toBe(1);
    expect(errors.split('\n').slice(1, -1)).toEqual([
      '  ADMIN_DATABASE_URL must hold a role and its password',
      '  APPS_DATABASE_URL must hold a role and its password',
      '  FILES_DATABASE_URL is required',
      '  IDENTITY_DATABASE_URL is required',
    ]);
  });
});

describe('the step that makes the bucket', () => {
  it('makes it, and leaves it where it is there', async ({ skip }) => {
    const server = await startS3Server();
    if ('unavailable' in server) return skip(server.unavailable);
    onTestFinished(() => server.stop());
    const env = {
      S3_ENDPOINT: server.endpoint,
      S3_REGION: server.region,
      S3_BUCKET: 'latchkey',
      S3_ACCESS_KEY_ID: server.accessKeyId,
      S3_SECRET_ACCESS_KEY: server.secretAccessKey,
      S3_FORCE_PATH_STYLE: 'true',
    };
    expect(await runStep('bucket', env)).toEqual({ code: 0, output: 'Made the bucket latchkey.\n', errors: '' });
    expect(await runStep('bucket', env)).toEqual({ code: 0, output: 'The bucket latchkey is there.\n', errors: '' });
    const refused = await runStep('bucket', { ...env, S3_SECRET_ACCESS_KEY: 'wrong' });
    expect(refused).toMatchObject({ code: 1, output: '' });
    expect(refused.errors).toMatch(
      new RegExp(`^The bucket latchkey could not be made at ${env.S3_ENDPOINT}: it answers 403 \\w+\\.\n$`),
    );
  }, 90_000);

  it('says in one sentence that the store can not be reached', async () => {
    const env = {
      S3_ENDPOINT: 'http://127.0.0.1:1',
      S3_BUCKET: 'latchkey',
      S3_ACCESS_KEY_ID: 'id',
      S3_SECRET_ACCESS_KEY: 'secret',
    };
    const errors = 'The bucket latchkey could not be made at http://127.0.0.1:1: ECONNREFUSED.\n';
    expect(await runStep('bucket', env)).toEqual({ code: 1, output: '', errors });
  }, 90_000);
});
