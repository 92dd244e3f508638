import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { eventually } from '@latchkey/testkit/eventually';
import { withClient } from '@latchkey/testkit/postgres/with-client';
import { programEnv } from '@latchkey/testkit/process/program-env';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { ROOT } from './compose/compose-file.ts';

/** Runs a step of a deployment with these settings and no others. */
async function runStep(name: string, env: Record<string, string>) {
  const child = spawn(process.execPath, [`deploy/setup/${name}.ts`], { cwd: ROOT, env: { ...programEnv(), ...env } });
  const [[code], output, errors] = await Promise.all([once(child, 'exit'), text(child.stdout), text(child.stderr)]);
  return { code, output, errors };
}

/** A new database, and URLs of roles that no other test has. */
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
  const admin = Object.assign(new URL(postgresUrl), { pathname: name }).href;
  const urlOf = (service: string, password = randomBytes(16).toString('hex')) =>
    Object.assign(new URL(admin), { username: `${service}_${suffix}`, password: encodeURIComponent(password) }).href;
  const settings = {
    ADMIN_DATABASE_URL: admin,
    APPS_DATABASE_URL: urlOf('apps'),
    FILES_DATABASE_URL: urlOf('files', 'it\'s "odd" 100%'),
    IDENTITY_DATABASE_URL: urlOf('identity'),
  };
  return { admin, urlOf, settings };
}

describe('the step that creates database roles', { timeout: 60_000 }, () => {
  it('waits for another one, gives each service its own schema only, and changes a password when run again', async () => {
    const { admin, urlOf, settings } = await newDatabase();
    const first = await withClient(admin, async (client) => {
      await client.query(`SELECT pg_advisory_lock(hashtext('latchkey database roles'))`);
      const step = runStep('database-roles', settings);
      const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'`;
      await eventually(async () => (await client.query(waiting)).rowCount === 1, { timeoutMs: 15_000 });
      await client.query(`SELECT pg_advisory_unlock(hashtext('latchkey database roles'))`);
      return step;
    });
    expect(first).toEqual({ code: 0, output: 'There are roles for apps, files, identity.\n', errors: '' });
    for (const service of ['apps', 'files', 'identity'] as const) {
      const url = settings[`${service.toUpperCase() as 'APPS'}_DATABASE_URL`];
      await withClient(url, async (client) => {
        await client.query(`CREATE TABLE mine (id int); INSERT INTO ${service}.mine VALUES (1)`);
        for (const schema of ['apps', 'files', 'identity', 'public'].filter((name) => name !== service)) {
          await expect(client.query(`CREATE TABLE ${schema}.theirs (id int)`)).rejects.toMatchObject({ code: '42501' });
        }
        await expect(client.query('CREATE ROLE another')).rejects.toMatchObject({ code: '42501' });
      });
    }
    const APPS_DATABASE_URL = urlOf('apps');
    expect(await runStep('database-roles', { ...settings, APPS_DATABASE_URL })).toMatchObject({ code: 0 });
    await withClient(APPS_DATABASE_URL, (client) => client.query('SELECT * FROM mine'));
    const previous = withClient(settings.APPS_DATABASE_URL, (client) => client.query('SELECT 1'));
    await expect(previous).rejects.toMatchObject({ code: '28P01' });
  });

  it('fails with a line of the log, without a password, where it is rejected, and names wrong settings', async () => {
    const { settings, urlOf } = await newDatabase();
    const ADMIN_DATABASE_URL = urlOf('stranger', 'wrong-password');
    const { code, output, errors } = await runStep('database-roles', { ...settings, ADMIN_DATABASE_URL });
    expect({ code, errors }).toEqual({ code: 1, errors: '' });
    expect(JSON.parse(output)).toMatchObject({ level: 60, msg: 'the roles could not be created', err: { code: '28P01' } });
    expect(output).not.toContain('wrong-password');
    const wrong = await runStep('database-roles', {
      ADMIN_DATABASE_URL: 'postgres://stranger:@127.0.0.1:1/x',
      APPS_DATABASE_URL: 'postgres://apps:100%@127.0.0.1:1/x',
    });
    expect(wrong.errors.split('\n').slice(1, -1)).toEqual([
      '  ADMIN_DATABASE_URL must hold a role and its password',
      '  APPS_DATABASE_URL must hold a role and its password',
      '  FILES_DATABASE_URL is required',
      '  IDENTITY_DATABASE_URL is required',
    ]);
  });
});

it('the step that creates the bucket leaves an existing one, and says where and why it fails', { timeout: 60_000 }, async () => {
  let bucketExists = false;
  const server = createServer(({ method, url, headers }, res) => {
    if (url !== '/latchkey' && url !== '/latchkey/') return res.writeHead(400).end();
    if (headers.authorization?.includes('wrong')) return res.writeHead(403).end();
    if (method === 'HEAD') return res.writeHead(bucketExists ? 200 : 404).end();
    bucketExists = true;
    return res.writeHead(200).end();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  const env = {
    S3_ENDPOINT: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    S3_BUCKET: 'latchkey',
    S3_ACCESS_KEY_ID: 'key',
    S3_SECRET_ACCESS_KEY: 'secret',
    S3_FORCE_PATH_STYLE: 'true',
  };
  expect(await runStep('bucket', env)).toEqual({ code: 0, output: 'Created the bucket latchkey.\n', errors: '' });
  expect(await runStep('bucket', env)).toEqual({ code: 0, output: 'The bucket latchkey exists.\n', errors: '' });
  const { code, errors } = await runStep('bucket', { ...env, S3_ACCESS_KEY_ID: 'wrong' });
  expect(code).toBe(1);
  expect(errors).toMatch(
    new RegExp(`^The bucket latchkey could not be created at ${env.S3_ENDPOINT}: it answers 403 \\w+\\.\n$`),
  );
});
