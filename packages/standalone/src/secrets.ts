import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { readSecretFile, writeSecretFile } from '@latchkey/embedded/secret-file';
import type { LauncherSettings } from './settings.ts';

/** What the services need to keep secret. */
export interface Secrets {
  readonly secretKey: string;
  /** One or two, comma-separated: what services of this deployment show each other. */
  readonly serviceCredentials: string;
}

interface StoredSecrets {
  secretKey?: string;
  serviceCredential?: string;
}

/** Takes the secrets that are set, and those that are not from the data folder, where they are made the first time. */
export async function readSecrets(dataDir: string, settings: LauncherSettings): Promise<Secrets> {
  const path = join(dataDir, 'secrets.json');
  const stored = ((await readSecretFile(path)) ?? {}) as StoredSecrets;
  const known = { ...stored };
  if (settings.SECRET_KEY === undefined) known.secretKey ??= createSecret();
  if (settings.SERVICE_CREDENTIALS === undefined) known.serviceCredential ??= createSecret();
  if (known.secretKey !== stored.secretKey || known.serviceCredential !== stored.serviceCredential) {
    await writeSecretFile(path, known);
  }
  return {
    secretKey: settings.SECRET_KEY ?? known.secretKey ?? '',
    serviceCredentials: settings.SERVICE_CREDENTIALS?.join(',') ?? known.serviceCredential ?? '',
  };
}

function createSecret(): string {
  return randomBytes(32).toString('base64url');
}
