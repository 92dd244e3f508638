import { chown, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '@latchkey/testkit/eventually';
import { createAuthority, type TestCertificate } from '@latchkey/testkit/network/certificates';
import { openEmptyDatabase } from '@latchkey/testkit/postgres/database';
import { startOwnPostgres } from '@latchkey/testkit/postgres/own-postgres';
import { withClient } from '@latchkey/testkit/postgres/with-client';
import { afterAll, expect, it } from 'vitest';
import { openDatabase } from '../testing/databases.ts';
import { certificateFolder, trustAuthority } from '../testing/tls.ts';
import { isDatabaseUnavailable } from './database.ts';
import { checkDatabaseUrl } from './database-wait.ts';

const postgres = await startOwnPostgres();
afterAll(() => postgres.remove());

/** Turns TLS on with a certificate, and waits until new connections get it. */
const serveTls = ({ cert, key }: TestCertificate) =>
  withClient(postgres.url, async (client) => {
    const dir = (await client.query('show data_directory')).rows[0].data_directory as string;
    const { uid, gid } = await stat(dir);
    for (const [name, text] of [
      ['server.crt', cert],
      ['server.key', key],
    ] as const) {
      await writeFile(join(dir, name), text, { mode: 0o600 });
      await chown(join(dir, name), uid, gid);
    }
    await client.query('alter system set ssl = on');
    await client.query('select pg_reload_conf()');
  });

const PATIENCE = { timeoutMs: 15_000 };
const rejects = (url: string, reason: RegExp) =>
  eventually(() => expect(checkDatabaseUrl(url)).rejects.toThrow(reason), PATIENCE);
const NOT_TRUSTED =
  /^the server's certificate is not trusted \(unable to verify the first certificate\): for a private authority, add sslrootcert=<its PEM file> to DATABASE_URL/;
const OTHER_NAME = /^the server's certificate is for another name \(IP: .*\): use a host in DATABASE_URL that it is for$/;

async function createAuthorityFile() {
  const authority = await createAuthority();
  const path = join(await certificateFolder(), 'ca.pem');
  await writeFile(path, authority.ca);
  return { ...authority, parameter: `sslrootcert=${path}` };
}

it.each(['verify-full', 'verify-ca', 'require'])('sslmode=%s verifies the certificate and the host', async (mode) => {
  const [authority, stranger] = [await createAuthorityFile(), await createAuthorityFile()];
  const url = `${postgres.url}?sslmode=${mode}`;
  await serveTls(await authority.issue());
  await rejects(url, NOT_TRUSTED);
  await rejects(`${url}&${stranger.parameter}`, NOT_TRUSTED);
  await eventually(() => checkDatabaseUrl(`${url}&${authority.parameter}`), PATIENCE);
  await serveTls(await authority.issue({ hosts: ['db.example'] }));
  await rejects(`${url}&${authority.parameter}`, OTHER_NAME);
});

it('sessions use TLS, also with several hosts, and with the authorities of NODE_EXTRA_CA_CERTS', async () => {
  const authority = await createAuthorityFile();
  await serveTls(await authority.issue());
  const { hostname, port } = new URL(postgres.url);
  const several = postgres.url.replace(`${hostname}:${port}`, `${hostname}:1,localhost:${port}`);
  const isEncrypted = async (url: string) =>
    (await openDatabase(url).pool.query('select ssl from pg_stat_ssl where pid = pg_backend_pid()')).rows[0].ssl;
  await eventually(() => checkDatabaseUrl(`${several}?sslmode=verify-full&${authority.parameter}`), PATIENCE);
  expect(await isEncrypted(`${postgres.url}?sslmode=no-verify`)).toBe(true);
  trustAuthority(authority);
  for (const url of [postgres.url, several]) expect(await isEncrypted(`${url}?sslmode=verify-full`)).toBe(true);
  expect(await isEncrypted(postgres.url)).toBe(false);
});

it('a certificate that is no longer trusted means unavailable', async () => {
  await serveTls(await (await createAuthority()).issue());
  const { pool } = openDatabase(`${postgres.url}?sslmode=verify-full`);
  await eventually(async () => {
    const err: unknown = await pool.query('select 1').catch((failure) => failure);
    expect(err).toMatchObject({ code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' });
    expect(isDatabaseUnavailable(err)).toBe(true);
  }, PATIENCE);
});

it('a server without TLS is rejected at start where the URL asks for it', async () => {
  const { url } = await openEmptyDatabase();
  await rejects(`${url}?sslmode=verify-full`, /^the server has no TLS: turn it on there \(ssl = on\), or remove sslmode/);
});
