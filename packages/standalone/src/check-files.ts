import { join, resolve } from 'node:path';
import { type FilesConfig, readFilesConfig } from '@latchkey/files/config';
import type { CheckTarget } from '@latchkey/files/storage/reconciler/check-command';
import { warnOfMisspelt } from '@latchkey/kit/config/misspelt-settings';
import { readConfig, urlSetting } from '@latchkey/kit/config/settings';
import { z } from 'zod';
import { openServiceDatabase } from './service-database.ts';

const settings = z.object({
  DATA_DIR: z.string().default('.data'),
  DATABASE_URL: urlSetting('postgres:', 'postgresql:').optional(),
  OBJECTS_DIR: z.string().optional(),
});

/** Stand for what a check does not use, and for the database until it is known. */
const UNUSED = { REDIS_URL: 'redis://unused', SECRET_KEY: 'unused-'.repeat(8) };
const DATABASE_UNKNOWN = 'postgresql://unknown';

/**
 * Finds the files of `npm start` and their database: that of DATABASE_URL, that of a Latchkey that
 * runs on the data folder, or else the folder's own, which runs until the target is closed.
 *
 * @param env settings of `npm start`
 * @throws {ConfigError} when settings are wrong
 * @throws {StartError} when there is no database
 */
export async function openCheckTarget(env: NodeJS.ProcessEnv, note: (line: string) => void): Promise<CheckTarget> {
  const { DATA_DIR, DATABASE_URL: given, OBJECTS_DIR } = readConfig(settings, env);
  const dataDir = resolve(DATA_DIR);
  const objectsDir = resolve(OBJECTS_DIR ?? join(dataDir, 'files'));
  const configFor = (url: string) => filesConfigFor(env, url, objectsDir);
  // Checks the settings before anything is started.
  configFor(given ?? DATABASE_UNKNOWN);
  warnOfMisspelt(env, note);
  if (given !== undefined) return { config: configFor(given), close: async () => undefined };
  const database = await openServiceDatabase({ dataDir, service: 'files', purpose: 'the check', note });
  return { config: configFor(database.url), close: database.close };
}

/** The settings of the files service for a check of one database and the objects in one folder. */
export function filesConfigFor(env: NodeJS.ProcessEnv, databaseUrl: string, objectsDir: string): FilesConfig {
  return readFilesConfig({ ...env, ...UNUSED, DATABASE_URL: databaseUrl, OBJECTS_DIR: objectsDir });
}
