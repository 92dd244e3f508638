import { randomBytes } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { findClusterDir, hasPostgres } from '@latchkey/embedded/running-postgres';
import { readSecretFile, writeSecretFile } from '@latchkey/embedded/secret-file';
import { StartError } from '@latchkey/embedded/start-error';
import { secretSetting } from '@latchkey/kit/config';
import { z } from 'zod';
import { hasAccounts } from './external-servers.ts';
import type { LauncherSettings } from './settings.ts';

/** What the services need to keep secret. */
export interface Secrets {
  readonly secretKey: string;
  /** One or two, comma-separated: what services of this deployment show each other. */
  readonly serviceCredentials: string;
}

const storedSecrets = z.object({ secretKey: secretSetting.optional(), serviceCredential: secretSetting.optional() });

/** Secrets as the data folder stores them. */
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
 * Takes the secrets that are set, and the others from the data folder, where the first start stores new ones.
 *
 * @throws {StartError} when the stored ones are lost or damaged, and when the database that they belong to is lost
 */
export async function readSecrets(dataDir: string, objectsDir: string, settings: LauncherSettings): Promise<Secrets> {
  const stored = await readStoredSecrets(dataDir);
  if (settings.DATABASE_URL === undefined) await refuseLostDatabase(dataDir, objectsDir);
  const known = { ...stored };
  if (settings.SECRET_KEY === undefined && known.secretKey === undefined) {
    await refuseLostKey(dataDir, stored, settings.DATABASE_URL);
    known.secretKey = createSecret();
  }
  if (settings.SERVICE_CREDENTIALS === undefined) known.serviceCredential ??= createSecret();
  if (known.secretKey !== stored?.secretKey || known.serviceCredential !== stored?.serviceCredential) {
    await writeSecretFile(secretsPath(dataDir), known);
  }
  return {
    secretKey: settings.SECRET_KEY ?? known.secretKey ?? '',
    serviceCredentials: settings.SERVICE_CREDENTIALS?.join(',') ?? known.serviceCredential ?? '',
  };
}

/** A new key would open nothing of what the database holds, and could hide that the old one is lost. */
async function refuseLostKey(dataDir: string, stored: StoredSecrets | undefined, databaseUrl: string | undefined): Promise<void> {
  if (databaseUrl === undefined ? !(await hasPostgres(dataDir)) : !(await hasAccounts(databaseUrl))) return;
  const database = databaseUrl === undefined ? `in ${await findClusterDir(dataDir)}` : 'of DATABASE_URL';
  const [lost, afresh] = [
    `${secretsPath(dataDir)} ${stored ? 'holds no secretKey' : 'is missing'}`,
    databaseUrl === undefined ? 'set DATA_DIR to another folder' : 'set DATABASE_URL to an empty database',
  ];
  throw new StartError(
    `${lost}, and the database ${database} was written with its secretKey. ` +
      `Restore the file from a backup, or set SECRET_KEY to that key. To start afresh, ${afresh}.`,
  );
}

/**
 * Redis and the files service make their folders once there is a database. Without it, a first start was interrupted where
 * these are missing too; otherwise the database is lost.
 */
async function refuseLostDatabase(dataDir: string, objectsDir: string): Promise<void> {
  if (await hasPostgres(dataDir)) return;
  const exists = async (path: string) => (await stat(path).catch(() => undefined)) !== undefined;
  const kept = [];
  for (const path of [join(dataDir, 'redis'), join(objectsDir, 'objects')]) if (await exists(path)) kept.push(path);
  if (kept.length === 0) return;
  throw new StartError(
    `The database is missing: there is no ${await findClusterDir(dataDir)}, but an earlier run left ` +
      `${[...((await exists(secretsPath(dataDir))) ? [secretsPath(dataDir)] : []), ...kept].join(' and ')}. Restore the database from a backup, or set DATABASE_URL where it is ` +
      `elsewhere. To start afresh with an empty database, move ${kept.join(' and ')} away.`,
  );
}

function secretsPath(dataDir: string): string {
  return join(dataDir, 'secrets.json');
}

function createSecret(): string {
  return randomBytes(32).toString('base64url');
}
