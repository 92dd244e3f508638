import { ConfigError } from '@latchkey/kit/config/settings';
import { readerOf, watchReader } from '../programs.ts';
import { containersOf, find, type KubeObject, nameOf, ofKind, workloads } from './objects.ts';

export function commandOf({ command = [], args = [] }: KubeObject): string[] {
  return [...command, ...args];
}

/** Data of a ConfigMap or a Secret as text. */
export function dataOf({ data, stringData }: KubeObject): Record<string, string> {
  return data ?? stringData ?? {};
}

/** The environment of a container: its own variables override those of ConfigMaps and Secrets. */
export function environmentOf({ env = [], envFrom = [] }: KubeObject, objects: readonly KubeObject[]): Record<string, string> {
  const source = (configMap?: KubeObject, secret?: KubeObject) => {
    const found = configMap ? find(objects, 'ConfigMap', configMap.name) : secret && find(objects, 'Secret', secret.name);
    return found ? dataOf(found) : {};
  };
  const values = Object.assign({}, ...envFrom.map((from: KubeObject) => source(from.configMapRef, from.secretRef)));
  for (const { name, value, valueFrom: { configMapKeyRef, secretKeyRef } = {} } of env as KubeObject[]) {
    values[name] = value ?? source(configMapKeyRef, secretKeyRef)[(configMapKeyRef ?? secretKeyRef)?.key] ?? '';
  }
  return values;
}

/** The config that a service parses from the environment of its container. */
export function configOf(container: KubeObject, objects: readonly KubeObject[]) {
  return readerOf(commandOf(container))?.(environmentOf(container, objects)) ?? {};
}

/** Values for the placeholders of the example. */
const FILLED: Readonly<Record<string, string>> = {
  SERVICE_CREDENTIALS: 'a'.repeat(32),
  REDIS_URL: 'redis://redis.example.com:6379',
  SECRET_KEY: 'b'.repeat(32),
  ...Object.fromEntries(
    ['APPS', 'IDENTITY', 'FILES'].map((name) => [
      `${name}_DATABASE_URL`,
      'postgres://role:password@postgresql.example.com:5432/latchkey',
    ]),
  ),
  S3_ACCESS_KEY_ID: 'id',
  S3_SECRET_ACCESS_KEY: 'secret',
  METRICS_TOKEN: 'c'.repeat(32),
};

/** The objects and the Secrets of an operator, with values for their placeholders. */
export function withSecrets(
  objects: readonly KubeObject[],
  secrets: Readonly<Record<string, Record<string, string>>>,
): KubeObject[] {
  const filled = (data: Record<string, string>) =>
    Object.fromEntries(Object.entries(data).map(([key, value]) => [key, value === 'CHANGE_ME' ? FILLED[key] : value]));
  return [
    ...objects,
    ...Object.entries(secrets).map(([name, data]) => ({ kind: 'Secret', metadata: { name }, stringData: filled(data) })),
  ];
}

/** Settings that the services reject. */
export function settingProblems(objects: readonly KubeObject[]): string[] {
  const programs = workloads(objects).filter(({ kind }) => kind !== 'Pod');
  return programs.flatMap((workload) =>
    containersOf(workload).flatMap((container) => {
      try {
        const command = commandOf(container);
        if (!readerOf(command)) return [`${nameOf(workload)}: ${command.join(' ')} runs none of our programs`];
        configOf(container, objects);
        return [];
      } catch (err) {
        if (!(err instanceof ConfigError)) throw err;
        return err.message.split('\n').map((problem) => `${nameOf(workload)}: ${problem}`);
      }
    }),
  );
}

/** Variables that no program reads: a container's own, and those of all processes. */
export function unreadSettings(objects: readonly KubeObject[]): string[] {
  const processes = ofKind(objects, 'Deployment').map((deployment) => {
    const [container] = containersOf(deployment);
    const env = environmentOf(container, objects);
    return { deployment, env, read: watchReader(readerOf(commandOf(container)) ?? (() => ({})), env).names };
  });
  const unread = processes.flatMap(({ deployment, env, read }) =>
    Object.keys(env).flatMap((name) => (read.has(name) ? [] : [{ deployment, name }])),
  );
  const isRead = (name: string) => processes.every(({ env }) => name in env) && processes.some(({ read }) => read.has(name));
  return unread.filter(({ name }) => !isRead(name)).map(({ deployment, name }) => `${nameOf(deployment)}: ${name} is not read`);
}
