import { backendsOf, containersOf, find, type KubeObject, nameOf, ofKind, podOf, portNumber, workloads } from './objects.ts';
import { dataOf } from './settings.ts';

/** References to objects, ports, keys and volumes that do not exist, and objects without any. */
export function referenceProblems(objects: readonly KubeObject[]): string[] {
  const used = new Set<string>();
  const problems: string[] = [];
  /** Records a reference, which must exist and have the key. */
  const refer = (from: KubeObject, kind: string, name: string, key?: string) => {
    used.add(`${kind} ${name}`);
    const target = find(objects, kind, name);
    if (!target || (key !== undefined && !(key in dataOf(target))))
      problems.push(`${nameOf(from)}: no ${kind} ${name} ${key ?? ''}`);
  };
  for (const workload of workloads(objects)) referWorkload(workload, objects, refer);
  for (const { from, service, port } of routes(objects)) {
    const target = find(objects, 'Service', service);
    const isThere = target?.spec.ports.some((each: KubeObject) => each.name === port.name || each.port === port.number);
    if (!isThere) problems.push(`${from}: Service ${service} has no port ${port.name ?? port.number}`);
  }
  for (const service of ofKind(objects, 'Service')) {
    const backends = backendsOf(service, objects);
    if (backends.length === 0) problems.push(`${nameOf(service)}: its selector selects no pods`);
    for (const { name, port, targetPort = port } of service.spec.ports) {
      const hasPort = (backend: KubeObject) => portNumber(backend, targetPort) !== undefined;
      if (!backends.every(hasPort)) problems.push(`${nameOf(service)}: port ${name} leads to ${targetPort}, which is missing`);
    }
  }
  const unused = [...ofKind(objects, 'ConfigMap'), ...ofKind(objects, 'Secret')].map(nameOf).filter((name) => !used.has(name));
  problems.push(...unused.map((name) => `${name}: nothing uses it`));
  return problems;
}

type Refer = (from: KubeObject, kind: string, name: string, key?: string) => void;

function referWorkload(workload: KubeObject, objects: readonly KubeObject[], refer: Refer): void {
  const { serviceAccountName, volumes = [] } = podOf(workload);
  // Hooks run before the release's account exists.
  if (!workload.metadata.annotations?.['helm.sh/hook']) refer(workload, 'ServiceAccount', serviceAccountName);
  for (const { env = [], envFrom = [], volumeMounts = [] } of containersOf(workload)) {
    for (const source of [...envFrom, ...env.map(({ valueFrom }: KubeObject) => valueFrom ?? {})]) {
      for (const [kind, ref] of [
        ['ConfigMap', source.configMapRef ?? source.configMapKeyRef],
        ['Secret', source.secretRef ?? source.secretKeyRef],
      ]) {
        if (ref && !(ref.optional && !find(objects, kind, ref.name))) refer(workload, kind, ref.name, ref.key);
      }
    }
    for (const { name } of volumeMounts) {
      if (!volumes.some((volume: KubeObject) => volume.name === name)) refer(workload, 'volume', name);
    }
  }
  const certificates = ofKind(objects, 'Certificate').map(({ spec }) => spec.secretName);
  for (const { name, persistentVolumeClaim, secret } of volumes) {
    const mounts = containersOf(workload).flatMap(({ volumeMounts = [] }) => volumeMounts);
    if (!mounts.some((mount: KubeObject) => mount.name === name)) refer(workload, 'mount of the volume', name);
    if (persistentVolumeClaim) refer(workload, 'PersistentVolumeClaim', persistentVolumeClaim.claimName);
    if (secret && !certificates.includes(secret.secretName)) refer(workload, 'Secret', secret.secretName);
  }
}

/** An entry from outside, to a port of a Service. */
interface Route {
  readonly from: string;
  readonly service: string;
  readonly port: { readonly name?: string; readonly number?: number };
}

/** Targets of Ingresses and HTTPRoutes. */
export function routes(objects: readonly KubeObject[]): Route[] {
  const ingresses = ofKind(objects, 'Ingress').flatMap((ingress) =>
    ingress.spec.rules.flatMap(({ http }: KubeObject) =>
      http.paths.map(({ backend }: KubeObject) => ({
        from: nameOf(ingress),
        service: backend.service.name,
        port: backend.service.port,
      })),
    ),
  );
  const httpRoutes = ofKind(objects, 'HTTPRoute').flatMap((route) =>
    route.spec.rules.flatMap(({ backendRefs }: KubeObject) =>
      backendRefs.map(({ name, port }: KubeObject) => ({ from: nameOf(route), service: name, port: { number: port } })),
    ),
  );
  return [...ingresses, ...httpRoutes];
}
