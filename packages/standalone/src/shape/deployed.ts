import { findFreePort } from '@latchkey/embedded/free-port';
import type { ServerProcess } from '@latchkey/embedded/server-process';
import { localUrl } from '../listen-address.ts';
import { type Supervised, supervise } from '../supervise.ts';
import { startChildService } from './child-service.ts';
import type { RunningShape, ShapeOptions } from './shape.ts';

/** Settings that are each service's own here; no service gets to see another's. */
const OWN_SETTINGS = [
  'HOST',
  'PORT',
  'GRPC_PORT',
  'DATABASE_URL',
  'REDIS_URL',
  'SECRET_KEY',
  'SERVICE_CREDENTIALS',
  'S3_ACCESS_KEY_ID',
  'S3_SECRET_ACCESS_KEY',
];

/** Identity's alone. The rest of what is set for issuers is no secret. */
const CLIENT_SECRET = /^OIDC_.+_CLIENT_SECRET$/;

/** Starts each service as a process of its own; they call one another over the network, on this machine only. */
export async function startDeployed(options: ShapeOptions): Promise<RunningShape> {
  const { address, servers, secrets, reporter, stops, checkWanted, publicUrl, objectsDir } = options;
  const { SERVICE_CREDENTIALS, SECRET_KEY, REDIS_URL } = {
    SERVICE_CREDENTIALS: secrets.serviceCredentials,
    SECRET_KEY: secrets.secretKey,
    REDIS_URL: servers.redisUrl,
  };
  const children = new Map<string, Supervised<ServerProcess>>();
  const run = async (name: string, url: string, env: NodeJS.ProcessEnv) => {
    const child = await superviseChild(options, name, url, env);
    children.set(name, child);
    stops.push(() => child.stop());
    checkWanted();
  };

  // A port is chosen when it is needed, as somebody else may take a free one meanwhile.
  const apps = await internalAddress();
  await reporter.step('Service apps', () =>
    run('apps', apps.url, {
      ...apps.env,
      SERVICE_CREDENTIALS,
      SECRET_KEY,
      REDIS_URL,
      DATABASE_URL: servers.databaseUrls.apps,
    }),
  );
  const identity = await internalAddress();
  await reporter.step('Service identity', () =>
    run('identity', identity.url, {
      ...identity.env,
      SERVICE_CREDENTIALS,
      SECRET_KEY,
      REDIS_URL,
      DATABASE_URL: servers.databaseUrls.identity,
      APPS_URL: apps.url,
      ...Object.fromEntries(Object.entries(options.env).filter(([name]) => CLIENT_SECRET.test(name))),
    }),
  );
  const { S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY } = options.env;
  const files = await internalAddress();
  await reporter.step('Service files', () =>
    run('files', files.url, {
      ...files.env,
      SERVICE_CREDENTIALS,
      SECRET_KEY,
      REDIS_URL,
      S3_ACCESS_KEY_ID,
      S3_SECRET_ACCESS_KEY,
      DATABASE_URL: servers.databaseUrls.files,
      APPS_URL: apps.url,
      IDENTITY_URL: identity.url,
      PUBLIC_URL: publicUrl,
      OBJECTS_DIR: objectsDir,
    }),
  );
  await reporter.step('Service gateway', () =>
    run('gateway', localUrl(address), {
      HOST: address.host,
      PORT: String(address.port),
      SERVICE_CREDENTIALS,
      REDIS_URL,
      IDENTITY_URL: identity.url,
      APPS_URL: apps.url,
      FILES_URL: files.url,
    }),
  );
  return {
    pids: () => Object.fromEntries([...children].map(([name, child]) => [name, child.current.pid])),
    internal: { apps: apps.internal, identity: identity.internal, files: files.internal },
  };
}

function superviseChild(options: ShapeOptions, name: string, url: string, env: NodeJS.ProcessEnv) {
  const common = { ...options.env };
  for (const name of Object.keys(common)) {
    if (OWN_SETTINGS.includes(name) || CLIENT_SECRET.test(name)) delete common[name];
  }
  return supervise({
    name: `The service ${name}`,
    start: () =>
      startChildService({ name, env: { ...common, ...env }, url, logs: options.logs, stopTimeoutMs: options.stopTimeoutMs }),
    onRestart: options.reporter.warn,
    onGiveUp: options.onGiveUp,
  });
}

async function internalAddress() {
  const [port, grpcPort] = [await findFreePort(), await findFreePort()];
  return {
    url: `http://127.0.0.1:${port}`,
    internal: { grpc: `127.0.0.1:${grpcPort}`, connect: `http://127.0.0.1:${port}` },
    env: { HOST: '127.0.0.1', PORT: String(port), GRPC_PORT: String(grpcPort) },
  };
}
