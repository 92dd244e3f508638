import { join, resolve } from 'node:path';
import { findRunningRedis } from '@latchkey/embedded/running-redis';
import { readSecretFile } from '@latchkey/embedded/secret-file';
import { readIdentityConfig } from '@latchkey/identity/config';
import type { AccountsTarget } from '@latchkey/identity/operator/accounts-command';
import { readConfig, secretSetting, urlSetting } from '@latchkey/kit/config';
import { z } from 'zod';
import { openServiceDatabase, requireDatabase } from './service-database.ts';

const settings = z.object({
  DATA_DIR: z.string().default('.data'),
  DATABASE_URL: urlSetting('postgres:', 'postgresql:').optional(),
  REDIS_URL: urlSetting('redis:', 'rediss:').optional(),
  SECRET_KEY: secretSetting.optional(),
});

/** Stand in for what is not known yet, or not there. */
const UNKNOWN = { DATABASE_URL: 'postgresql://unknown', REDIS_URL: 'redis://unknown' };

/**
 * Finds the accounts of `npm start`: in the database that DATABASE_URL names, that of a Latchkey that runs on the data folder, or else that folder's
 * own, which runs until the target is closed. The gateways are told by the Redis that REDIS_URL names, or that of a Latchkey that runs.
 *
 * @param env settings of `npm start`
 * @param note told what takes a moment
 * @throws {ConfigError} when settings are wrong
 * @throws {StartError} when there is no database
 */
export async function openAccountsTarget(env: NodeJS.ProcessEnv, note: (line: string) => void): Promise<AccountsTarget> {
  const { DATA_DIR, DATABASE_URL, REDIS_URL, SECRET_KEY } = readConfig(settings, env);
  const dataDir = resolve(DATA_DIR);
  if (DATABASE_URL === undefined) await requireDatabase(dataDir);
  const secretKey = SECRET_KEY ?? (await readSecretKey(dataDir));
  const configFor = (urls: Partial<typeof UNKNOWN>) => readIdentityConfig({ ...env, SECRET_KEY: secretKey, ...UNKNOWN, ...urls });
  // Wrong settings are told before anything is started.
  configFor({});
  const database =
    DATABASE_URL === undefined
      ? await openServiceDatabase({ dataDir, service: 'identity', purpose: 'this command', note })
      : { url: DATABASE_URL, running: true, close: async () => undefined };
  const redisUrl = REDIS_URL ?? (database.running ? await findRunningRedis(dataDir) : undefined);
  const target = {
    config: configFor({ DATABASE_URL: database.url, ...(redisUrl && { REDIS_URL: redisUrl }) }),
    close: database.close,
  };
  if (redisUrl !== undefined) return { ...target, listeners: 'by-redis' };
  return { ...target, listeners: database.running ? 'unknown' : 'none' };
}

/** The one that the first start made. */
async function readSecretKey(dataDir: string): Promise<string | undefined> {
  return ((await readSecretFile(join(dataDir, 'secrets.json'))) as { secretKey?: string } | undefined)?.secretKey;
}
