import type { DatabaseService } from '../servers.ts';

/** The services, those first that others call. */
export const SERVICES = ['apps', 'identity', 'files', 'gateway', 'realtime'] as const;

export type Service = (typeof SERVICES)[number];

export interface Deployment {
  readonly databaseUrls: Readonly<Record<DatabaseService, string>>;
  readonly redisUrl: string;
  readonly secretKey: string;
  readonly serviceCredentials: string;
  readonly publicUrl: string;
  readonly objectsDir: string;
  readonly urls: Readonly<Record<DatabaseService, string>>;
}

/**
 * The settings that connect one service with the rest of a deployment. It gets no secret of
 * another.
 */
export function connectingSettings(service: Service, deployment: Deployment): NodeJS.ProcessEnv {
  const { databaseUrls, redisUrl, secretKey, serviceCredentials, publicUrl, objectsDir, urls } = deployment;
  const [APPS_URL, IDENTITY_URL, FILES_URL] = [urls.apps, urls.identity, urls.files];
  const stored = (name: DatabaseService) => ({ SECRET_KEY: secretKey, DATABASE_URL: databaseUrls[name] });
  const own: Readonly<Record<Service, NodeJS.ProcessEnv>> = {
    apps: stored('apps'),
    identity: { ...stored('identity'), APPS_URL },
    files: { ...stored('files'), APPS_URL, IDENTITY_URL, PUBLIC_URL: publicUrl, OBJECTS_DIR: objectsDir },
    gateway: { APPS_URL, IDENTITY_URL, FILES_URL },
    realtime: { APPS_URL },
  };
  return { ...own[service], REDIS_URL: redisUrl, SERVICE_CREDENTIALS: serviceCredentials };
}
