import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { findClusterDir, hasPostgres } from '@latchkey/embedded/postgres/running-postgres';
import { readSecretFile, writeSecretFile } from '@latchkey/embedded/process/secret-file';
import { StartError } from '@latchkey/embedded/process/start-error';
import { secretSetting } from '@latchkey/kit/config/settings';
import { z } from 'zod';
import { hasAccounts } from './external-servers.ts';
import type { LauncherSettings } from './settings.ts';

const storedSecrets = z.object({ secretKey: secretSetting.optional(), serviceCredential: secretSetting.optional() });

type StoredSecrets = z.output<typeof storedSecrets>;

/**
 * Reads the secrets that the first start stored in a data folder.
 *
 * @returns undefined where there is no such file
 * @throws {StartError} when the file is damaged
 */
export async function readStoredSecrets(dataDir: string): Promise<StoredSecrets | undefined> {
  const path = secretsPath(dataDir);
  const document = await readSecretFile(path);
  if (document === undefined) return undefined;
  const { data } = storedSecrets.safeParse(document);
  if (data) return data;
  throw new StartError(
    `${path} is damaged: its secretKey or serviceCredential is not what was stored. Restore the file from a backup.`,
  );
}

/**
 * Reads the secrets from the settings, else from the data folder, where the first start stores
 * new ones.
 *
 * @throws {StartError} when the stored ones, or the database that they belong to, are lost
 */
export async function readSecrets(dataDir: string, objectsDir: string, settings: LauncherSettings) {
  const { DATABASE_URL, SECRET_KEY, SERVICE_CREDENTIALS } = settings;
  const stored = await readStoredSecrets(dataDir);
  if (DATABASE_URL === undefined) await rejectLostDatabase(dataDir, objectsDir);
  const known = { ...stored };
  if (SECRET_KEY === undefined && known.secretKey === undefined) {
    await rejectLostKey(dataDir, stored, DATABASE_URL);
    known.secretKey = createSecret();
  }
  if (SERVICE_CREDENTIALS === undefined) known.serviceCredential ??= createSecret();
  if (known.secretKey !== stored?.secretKey || known.serviceCredential !== stored?.serviceCredential) {
    await writeSecretFile(secretsPath(dataDir), known);
  }
  return {
    secretKey: SECRET_KEY ?? known.secretKey ?? '',
    /** One or two, separated by a comma. */
    serviceCredentials: SERVICE_CREDENTIALS?.join(',') ?? known.serviceCredential ?? '',
  };
}

/** A new key could not open the database, and would hide that the old one is lost. */
async function rejectLostKey(dataDir: string, stored: StoredSecrets | undefined, databaseUrl: string | undefined): Promise<void> {
  if (databaseUrl === undefined ? !(await hasPostgres(dataDir)) : !(await hasAccounts(databaseUrl))) return;
  const lost = `${secretsPath(dataDir)} ${stored ? 'holds no secretKey' : 'is missing'}`;
  const [database, newDatabase] =
    databaseUrl === undefined
      ? [`in ${await findClusterDir(dataDir)}`, 'DATA_DIR to another folder']
      : ['of DATABASE_URL', 'DATABASE_URL to an empty database'];
  throw new StartError(
    `${lost}, and the database ${database} was written with its secretKey. ` +
      `Restore the file from a backup, or set SECRET_KEY to that key. To start afresh, set ${newDatabase}.`,
  );
}

/**
 * Redis and the files service create their folders after the database. Without these, a first start
 * was interrupted; with one of them, the database is lost.
 */
async function rejectLostDatabase(dataDir: string, objectsDir: string): Promise<void> {
  if (await hasPostgres(dataDir)) return;
  const kept = [join(dataDir, 'redis'), join(objectsDir, 'objects')].filter(existsSync);
  if (kept.length === 0) return;
  const left = [secretsPath(dataDir)].filter(existsSync).concat(kept);
  throw new StartError(
    `The database is missing: there is no ${await findClusterDir(dataDir)}, but an earlier run left ${left.join(' and ')}. ` +
      'Restore the database from a backup, or set DATABASE_URL where it is elsewhere. ' +
      `To start afresh with an empty database, move ${kept.join(' and ')} away.`,
  );
}

function secretsPath(dataDir: string): string {
  return join(dataDir, 'secrets.json');
}

function createSecret(): string {
  return randomBytes(32).toString('base64url');
}
