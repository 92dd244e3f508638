import { join } from 'node:path';
import { findServiceDatabase } from '@latchkey/embedded/postgres/running-postgres';
import { findRunningRedis } from '@latchkey/embedded/redis/running-redis';
import { type IdentityConfig, readIdentityConfig } from '@latchkey/identity/config';
import type { AccountsTarget } from '@latchkey/identity/operator/accounts-process';
import { warnOfMisspelt } from '@latchkey/kit/config/misspelt-settings';
import { ConfigError } from '@latchkey/kit/config/settings';
import { checkPostgres } from './external-servers.ts';
import { openDatabase, readDataSettings, requireDatabase } from './open-database.ts';
import { readStoredSecrets } from './secrets.ts';

/** Replace the URLs that are not known yet. */
const UNKNOWN = { DATABASE_URL: 'postgresql://unknown', REDIS_URL: 'redis://unknown' };

/**
 * Finds the accounts of `npm start`: in the database of DATABASE_URL, that of a Latchkey that
 * runs on the data folder, or else the folder's own, which runs until the target is closed.
 * Gateways hear of changes through the Redis of REDIS_URL, or that of the Latchkey that runs.
 *
 * @param env settings of `npm start`
 * @throws {ConfigError} when settings are wrong
 * @throws {StartError} when no database is found
 */
export async function openAccountsTarget(env: NodeJS.ProcessEnv, note: (line: string) => void): Promise<AccountsTarget> {
  const { dataDir, databaseUrl } = readDataSettings(env);
  if (databaseUrl === undefined) await requireDatabase(dataDir);
  // Checks the settings before anything is started.
  const config = await readSettings(env, dataDir);
  warnOfMisspelt(env, note);
  if (databaseUrl !== undefined) await checkPostgres(databaseUrl);
  const { url, running, close } =
    databaseUrl === undefined
      ? await openDatabase(dataDir, 'identity', 'this command', note)
      : { url: databaseUrl, running: true, close: async () => undefined };
  const redisUrl = env.REDIS_URL || (running ? await findRedisOf(url, dataDir) : undefined);
  const listeners = redisUrl !== undefined ? 'by-redis' : running ? 'unknown' : 'none';
  return { config: { ...config, DATABASE_URL: url, REDIS_URL: redisUrl ?? UNKNOWN.REDIS_URL }, close, listeners };
}

/** @throws {ConfigError} which also names the file that lacks the secret key */
async function readSettings(env: NodeJS.ProcessEnv, dataDir: string): Promise<IdentityConfig> {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  const SECRET_KEY = given.SECRET_KEY ?? (await readStoredSecrets(dataDir))?.secretKey;
  try {
    return readIdentityConfig({ ...UNKNOWN, ...given, SECRET_KEY });
  } catch (err) {
    if (!(err instanceof ConfigError)) throw err;
    const where = `, as ${join(dataDir, 'secrets.json')} holds none: set it, or DATA_DIR, as for npm start`;
    throw new ConfigError(err.message.replace(/^SECRET_KEY is required$/m, (problem) => problem + where));
  }
}

/** The Redis of the Latchkey that runs on a data folder, unless that one uses another database. */
async function findRedisOf(databaseUrl: string, dataDir: string): Promise<string | undefined> {
  const own = await findServiceDatabase(dataDir, 'identity');
  return own === undefined || own === databaseUrl ? findRunningRedis(dataDir) : undefined;
}
