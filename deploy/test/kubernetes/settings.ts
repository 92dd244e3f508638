import { ConfigError } from '@latchkey/kit/config/settings';
import { readerOf, watchReader } from '../programs.ts';
import { containersOf, find, type KubeObject, nameOf, ofKind, workloads } from './objects.ts';

export function commandOf({ command = [], args = [] }: KubeObject): string[] {
  return [...command, ...args];
}

/** Data of a ConfigMap or a Secret as text. */
export function dataOf({ kind, data = {} }: KubeObject): Record<string, string> {
  if (kind !== 'Secret') return data;
  const decoded = Object.entries<string>(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]);
  return Object.fromEntries(decoded);
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
  DATABASE_URL: 'postgres://role:password@postgresql.example.com:5432/latchkey',
  S3_ACCESS_KEY_ID: 'id',
  S3_SECRET_ACCESS_KEY: 'secret',
  METRICS_TOKEN: 'c'.repeat(32),
};

/**
 * The objects with what an operator has to fill in: secrets, and the addresses of the ingress
 * controller.
 */
export function withSecrets(objects: readonly KubeObject[]): KubeObject[] {
  return objects.map((object) => {
    if (object.kind === 'ConfigMap' && object.data?.TRUSTED_PROXIES === 'CHANGE_ME') {
      return { ...object, data: { ...object.data, TRUSTED_PROXIES: '10.244.7.0/24' } };
    }
    if (object.kind !== 'Secret') return object;
    const filled = Object.entries(dataOf(object)).map(([key, value]) => [key, FILLED[key] ?? value] as const);
    const data = Object.fromEntries(filled.map(([key, value]) => [key, Buffer.from(value).toString('base64')]));
    return { ...object, data };
  });
}

/** Settings that the services reject. */
export function settingProblems(objects: readonly KubeObject[]): string[] {
  return workloads(objects).flatMap((workload) =>
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

/** Variables that no program reads: a container's own, and shared ones. */
export function unreadSettings(objects: readonly KubeObject[]): string[] {
  const problems: string[] = [];
  const readFrom = new Map<string, string[]>();
  for (const workload of workloads(objects)) {
    for (const container of containersOf(workload)) {
      const read = readerOf(commandOf(container));
      const names = read ? [...watchReader(read, environmentOf(container, objects)).names] : [];
      const own = (container.env ?? []).map(({ name }: KubeObject) => name);
      problems.push(...own.filter((name: string) => !names.includes(name)).map((name: string) => `${nameOf(workload)}: ${name}`));
      for (const { configMapRef, secretRef } of container.envFrom ?? []) {
        const source = (configMapRef ?? secretRef).name;
        readFrom.set(source, [...(readFrom.get(source) ?? []), ...names]);
      }
    }
  }
  const sources = [...ofKind(objects, 'ConfigMap'), ...ofKind(objects, 'Secret')];
  const unread = sources.flatMap((object) => {
    const names = readFrom.get(object.metadata.name);
    return names ? Object.keys(dataOf(object)).flatMap((key) => (names.includes(key) ? [] : [`${nameOf(object)}: ${key}`])) : [];
  });
  return [...problems, ...unread].map((problem) => `${problem} is not read`);
}
