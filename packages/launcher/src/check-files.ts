import { type FilesConfig, readFilesConfig } from '@latchkey/files/config';
import type { CheckTarget } from '@latchkey/files/storage/reconciler/check-command';
import { warnOfMisspelt } from '@latchkey/kit/config/misspelt-settings';
import { openDatabase, readDataSettings } from './open-database.ts';

/** Replace settings that a check does not use, and the database until it is known. */
const UNUSED = { REDIS_URL: 'redis://unused', SECRET_KEY: 'unused-'.repeat(8) };
const DATABASE_UNKNOWN = 'postgresql://unknown';

/**
 * Finds the files of `npm start` and their database: that of DATABASE_URL, that of a Latchkey that
 * runs on the data folder, or else the folder's own, which runs until the target is closed.
 *
 * @param env settings of `npm start`
 * @throws {ConfigError} when settings are wrong
 * @throws {StartError} when no database is found
 */
export async function openCheckTarget(env: NodeJS.ProcessEnv, note: (line: string) => void): Promise<CheckTarget> {
  const { dataDir, databaseUrl, objectsDir } = readDataSettings(env);
  // Checks the settings before anything is started.
  const config = filesConfigFor(env, databaseUrl ?? DATABASE_UNKNOWN, objectsDir);
  warnOfMisspelt(env, note);
  if (databaseUrl !== undefined) return { config, close: async () => undefined };
  const { url, close } = await openDatabase(dataDir, 'files', 'the check', note);
  return { config: { ...config, DATABASE_URL: url }, close };
}

/** The settings of the files service for a check of one database and the objects in one folder. */
export function filesConfigFor(env: NodeJS.ProcessEnv, databaseUrl: string, objectsDir: string): FilesConfig {
  return readFilesConfig({ ...env, ...UNUSED, DATABASE_URL: databaseUrl, OBJECTS_DIR: objectsDir });
}
