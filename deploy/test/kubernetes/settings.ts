import { readAppsProcessConfig } from '@latchkey/apps/config';
import { readAvatarWorkerConfig, readFilesProcessConfig } from '@latchkey/files/config';
import { readGatewayProcessConfig } from '@latchkey/gateway/config';
import { readIdentityProcessConfig } from '@latchkey/identity/config';
import { ConfigError, readTogether } from '@latchkey/kit/config';
import { readMigrationConfig } from '@latchkey/kit/migrate-process';
import { readTelemetryConfig } from '@latchkey/kit/telemetry';
import { readRealtimeProcessConfig } from '@latchkey/realtime/config';
import { containersOf, find, type KubeObject, labelsOf, nameOf, ofKind, workloads } from './objects.ts';

/** What each service reads its environment with, by the program that is run. */
const READERS: Readonly<Record<string, (env: NodeJS.ProcessEnv) => unknown>> = {
  'services/gateway/src/main.ts': readGatewayProcessConfig,
  'services/apps/src/main.ts': readAppsProcessConfig,
  'services/identity/src/main.ts': readIdentityProcessConfig,
  'services/files/src/main.ts': readFilesProcessConfig,
  'services/realtime/src/main.ts': readRealtimeProcessConfig,
};

/** The reader of a container's settings, or undefined where it runs none of our programs. */
export function readerOf(container: KubeObject): ((env: NodeJS.ProcessEnv) => unknown) | undefined {
  const words: string[] = [...(container.command ?? []), ...(container.args ?? [])];
  if (words.at(-1) === 'migrate') return readMigrationConfig;
  const read = words.includes('avatar-worker')
    ? readAvatarWorkerConfig
    : words.map((word) => READERS[word]).find((each) => each !== undefined);
  if (!read) return undefined;
  // As each process does: metrics and traces beside what is its own.
  return (env) =>
    readTogether(
      () => read(env),
      () => readTelemetryConfig(env),
    )[0];
}

/** Data of a ConfigMap or a Secret as text. */
export function dataOf(object: KubeObject): Record<string, string> {
  const { data = {} } = object;
  if (object.kind !== 'Secret') return data;
  return Object.fromEntries(
    Object.entries<string>(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]),
  );
}

/** The environment that a container's process sees: what it takes from ConfigMaps and Secrets as a whole, and its own variables, which win. */
export function environmentOf(container: KubeObject, objects: readonly KubeObject[]): Record<string, string> {
  const env: Record<string, string> = {};
  for (const { configMapRef, secretRef } of container.envFrom ?? []) {
    const source = configMapRef ? find(objects, 'ConfigMap', configMapRef.name) : find(objects, 'Secret', secretRef.name);
    if (source) Object.assign(env, dataOf(source));
  }
  for (const { name, value, valueFrom } of container.env ?? []) {
    const { configMapKeyRef, secretKeyRef } = valueFrom ?? {};
    const source = configMapKeyRef
      ? find(objects, 'ConfigMap', configMapKeyRef.name)
      : secretKeyRef && find(objects, 'Secret', secretKeyRef.name);
    env[name] = value ?? (source && dataOf(source)[(configMapKeyRef ?? secretKeyRef).key]) ?? '';
  }
  return env;
}

/** Values for the placeholders of the example. */
const FILLED: Readonly<Record<string, string>> = {
  SERVICE_CREDENTIALS: 'a'.repeat(32),
  REDIS_URL: 'redis://redis.example.com:6379',
  SECRET_KEY: 'b'.repeat(32),
  DATABASE_URL: 'postgres://role:password@postgresql.example.com:5432/latchkey',
  S3_ACCESS_KEY_ID: 'id',
  S3_SECRET_ACCESS_KEY: 'secret',
  METRICS_TOKEN: 'c'.repeat(32),
};

/** The objects with the secrets and the ingress controller's addresses filled in, as an operator is to do. */
export function withSecrets(objects: readonly KubeObject[]): KubeObject[] {
  return objects.map((object) => {
    if (object.kind === 'ConfigMap' && object.data?.TRUSTED_PROXIES === 'CHANGE_ME')
      return { ...object, data: { ...object.data, TRUSTED_PROXIES: '10.244.7.0/24' } };
    if (object.kind !== 'Secret') return object;
    const data = Object.fromEntries(
      Object.entries(dataOf(object)).map(([key, value]) => [key, Buffer.from(FILLED[key] ?? value).toString('base64')]),
    );
    return { ...object, data };
  });
}

/** What the services say is wrong with their settings. */
export function settingProblems(objects: readonly KubeObject[]): string[] {
  return workloads(objects).flatMap((workload) =>
    containersOf(workload).flatMap((container) => {
      const read = readerOf(container);
      if (!read) return [`${nameOf(workload)}: ${container.command?.join(' ')} runs none of our programs`];
      try {
        read(environmentOf(container, objects));
        return [];
      } catch (err) {
        if (!(err instanceof ConfigError)) throw err;
        return err.message.split('\n').map((problem) => `${nameOf(workload)}: ${problem}`);
      }
    }),
  );
}

/** Names of the variables that a reader asks for, whatever they hold. */
function namesRead(read: (env: NodeJS.ProcessEnv) => unknown, env: Record<string, string>): Set<string> {
  const names = new Set<string>();
  const watched = new Proxy(env, {
    get(target, name) {
      if (typeof name === 'string') names.add(name);
      return Reflect.get(target, name);
    },
  });
  try {
    read(watched);
  } catch (err) {
    if (!(err instanceof ConfigError)) throw err;
  }
  return names;
}

/** Variables that nothing reads: a container's own that its service does not know, and shared ones that none of those they are given to does. */
export function unreadSettings(objects: readonly KubeObject[]): string[] {
  const problems: string[] = [];
  const readFrom = new Map<string, Set<string>>();
  for (const workload of workloads(objects)) {
    for (const container of containersOf(workload)) {
      const read = readerOf(container);
      const names = read ? namesRead(read, environmentOf(container, objects)) : new Set<string>();
      for (const { name } of container.env ?? []) {
        if (!names.has(name)) problems.push(`${nameOf(workload)}: nothing reads ${name}`);
      }
      for (const { configMapRef, secretRef } of container.envFrom ?? []) {
        const source = (configMapRef ?? secretRef).name;
        readFrom.set(source, new Set([...(readFrom.get(source) ?? []), ...names]));
      }
    }
  }
  for (const object of [...ofKind(objects, 'ConfigMap'), ...ofKind(objects, 'Secret')]) {
    const names = readFrom.get(object.metadata.name);
    for (const key of names ? Object.keys(dataOf(object)) : []) {
      if (!names?.has(key)) problems.push(`${nameOf(object)}: nothing reads ${key}`);
    }
  }
  return problems;
}

/** What a service's Deployment is called, from its labels. */
export function componentOf(workload: KubeObject): string {
  return labelsOf(workload)['app.kubernetes.io/component'] ?? '';
}
