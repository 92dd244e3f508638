import { Client, escapeIdentifier, escapeLiteral } from 'pg';
import { createPassword, writeSecretFile } from '../process/secret-file.ts';
import type { EmbeddedPostgres } from './postgres.ts';
import { readCredentials } from './postgres-cluster.ts';

const DATABASE = 'latchkey';

/**
 * Creates, in one database, a role and a schema of the same name for each service. A role owns its
 * schema and sees no other, so that a service that reads another's tables fails here already.
 *
 * @returns the URL for each service
 */
export async function ensureServiceDatabases<Name extends string>(
  admin: Pick<EmbeddedPostgres, 'credentialsPath' | 'port' | 'url'>,
  services: readonly Name[],
): Promise<Record<Name, string>> {
  const passwords = await ensurePasswords(admin.credentialsPath, services);
  await withClient(admin.url(), async (client) => {
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [DATABASE]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${DATABASE}`);
    await client.query(`REVOKE ALL ON DATABASE ${DATABASE} FROM PUBLIC`);
    for (const service of services) await ensureRole(client, service, passwords[service] ?? '');
  });
  await withClient(admin.url(DATABASE), async (client) => {
    await client.query('REVOKE ALL ON SCHEMA public FROM PUBLIC');
    for (const service of services) {
      const name = escapeIdentifier(service);
      await client.query(`CREATE SCHEMA IF NOT EXISTS ${name} AUTHORIZATION ${name}`);
    }
  });
  const urls = services.map((service) => [service, roleUrl(admin.port, service, passwords[service] ?? '')]);
  return Object.fromEntries(urls) as Record<Name, string>;
}

/** The URL that {@link ensureServiceDatabases} gave a service, if any, with the present port. */
export async function readServiceDatabaseUrl(
  { credentialsPath, port }: Pick<EmbeddedPostgres, 'credentialsPath' | 'port'>,
  service: string,
): Promise<string | undefined> {
  const password = (await readCredentials(credentialsPath))?.roles[service];
  return password === undefined ? undefined : roleUrl(port, service, password);
}

export function roleUrl(port: number, role: string, password: string): string {
  return `postgresql://${role}:${encodeURIComponent(password)}@127.0.0.1:${port}/${DATABASE}`;
}

/** The password is set at every start: the server then agrees with a restored password file. */
async function ensureRole(client: Client, service: string, password: string): Promise<void> {
  const name = escapeIdentifier(service);
  const { rowCount } = await client.query('SELECT 1 FROM pg_roles WHERE rolname = $1', [service]);
  if (rowCount === 0) await client.query(`CREATE ROLE ${name}`);
  await client.query(`ALTER ROLE ${name} WITH LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD ${escapeLiteral(password)}`);
  await client.query(`ALTER ROLE ${name} SET search_path = ${name}`);
  await client.query(`GRANT CONNECT, TEMPORARY ON DATABASE ${DATABASE} TO ${name}`);
}

async function ensurePasswords(path: string, services: readonly string[]): Promise<Record<string, string>> {
  const credentials = await readCredentials(path);
  if (!credentials) throw new Error(`${path} is missing`);
  const missing = services.filter((service) => credentials.roles[service] === undefined);
  for (const service of missing) credentials.roles[service] = createPassword();
  if (missing.length > 0) await writeSecretFile(path, credentials);
  return credentials.roles;
}

export async function withClient<T>(url: string, use: (client: Client) => Promise<T>, timeoutMs = 30_000): Promise<T> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 10_000, statement_timeout: timeoutMs });
  // A lost connection also rejects the query.
  client.on('error', () => {});
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
