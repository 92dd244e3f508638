import { join, resolve } from 'node:path';
import { findServiceDatabase } from '@latchkey/embedded/running-postgres';
import { findRunningRedis } from '@latchkey/embedded/running-redis';
import { readIdentityConfig } from '@latchkey/identity/config';
import type { AccountsTarget } from '@latchkey/identity/operator/accounts-process';
import { warnOfMisspelt } from '@latchkey/kit/config/misspelt-settings';
import { ConfigError, readConfig, secretSetting, urlSetting } from '@latchkey/kit/config/settings';
import { z } from 'zod';
import { checkPostgres } from './external-servers.ts';
import { readStoredSecrets } from './secrets.ts';
import { openServiceDatabase, requireDatabase } from './service-database.ts';

const settings = z.object({
  DATA_DIR: z.string().default('.data'),
  DATABASE_URL: urlSetting('postgres:', 'postgresql:').optional(),
  REDIS_URL: urlSetting('redis:', 'rediss:').optional(),
  SECRET_KEY: secretSetting.optional(),
});

/** Stand for what is not known yet. */
const UNKNOWN = { DATABASE_URL: 'postgresql://unknown', REDIS_URL: 'redis://unknown' };

/**
 * Finds the accounts of `npm start`: in the database of DATABASE_URL, that of a Latchkey that
 * runs on the data folder, or else the folder's own, which runs until the target is closed.
 * Gateways hear of changes through the Redis of REDIS_URL, or that of the Latchkey that runs.
 *
 * @param env settings of `npm start`
 * @throws {ConfigError} when settings are wrong
 * @throws {StartError} when there is no database
 */
export async function openAccountsTarget(env: NodeJS.ProcessEnv, note: (line: string) => void): Promise<AccountsTarget> {
  const { DATA_DIR, DATABASE_URL, REDIS_URL, SECRET_KEY } = readConfig(settings, env);
  const dataDir = resolve(DATA_DIR);
  if (DATABASE_URL === undefined) await requireDatabase(dataDir);
  const secretKey = SECRET_KEY ?? (await readStoredSecrets(dataDir))?.secretKey;
  const configFor = (urls: Partial<typeof UNKNOWN>) => readIdentityConfig({ ...env, SECRET_KEY: secretKey, ...UNKNOWN, ...urls });
  // Checks the settings before anything is started.
  checkSettings(() => configFor({}), dataDir);
  warnOfMisspelt(env, note);
  const database =
    DATABASE_URL === undefined
      ? await openServiceDatabase({ dataDir, service: 'identity', purpose: 'this command', note })
      : await openGivenDatabase(DATABASE_URL);
  const redisUrl = REDIS_URL ?? (database.running ? await findRedisOf(database.url, dataDir) : undefined);
  const target = {
    config: configFor({ DATABASE_URL: database.url, ...(redisUrl && { REDIS_URL: redisUrl }) }),
    close: database.close,
  };
  if (redisUrl !== undefined) return { ...target, listeners: 'by-redis' };
  return { ...target, listeners: database.running ? 'unknown' : 'none' };
}

/** @throws {ConfigError} which also names the file that holds no secret key */
function checkSettings(read: () => unknown, dataDir: string): void {
  try {
    read();
  } catch (err) {
    if (!(err instanceof ConfigError)) throw err;
    const where = `, as ${join(dataDir, 'secrets.json')} holds none: set it, or DATA_DIR, as for npm start`;
    throw new ConfigError(err.message.replace(/^SECRET_KEY is required$/m, (problem) => problem + where));
  }
}

async function openGivenDatabase(url: string) {
  await checkPostgres(url);
  return { url, running: true, close: async () => undefined };
}

/** The Redis of the Latchkey that runs on a data folder, unless that one uses another database. */
async function findRedisOf(databaseUrl: string, dataDir: string): Promise<string | undefined> {
  const own = await findServiceDatabase(dataDir, 'identity');
  return own === undefined || own === databaseUrl ? findRunningRedis(dataDir) : undefined;
}
