import {
  backendsOf,
  containersOf,
  find,
  type KubeObject,
  labelsOf,
  nameOf,
  ofKind,
  podOf,
  portNumber,
  selects,
  workloads,
} from './objects.ts';
import { dataOf } from './settings.ts';

/** References to objects, ports, keys and volumes that do not exist. */
export function referenceProblems(objects: readonly KubeObject[]): string[] {
  return [
    ...ofKind(objects, 'Deployment').flatMap((deployment) => deploymentProblems(deployment, objects)),
    ...ofKind(objects, 'Service').flatMap((service) => serviceProblems(service, objects)),
    ...routes(objects).flatMap((route) => routeProblems(route, objects)),
    ...ofKind(objects, 'HorizontalPodAutoscaler').flatMap((autoscaler) => autoscalerProblems(autoscaler, objects)),
    ...workloads(objects).flatMap((workload) => [...sourceProblems(workload, objects), ...volumeProblems(workload, objects)]),
    ...unusedSources(objects),
  ];
}

function deploymentProblems(deployment: KubeObject, objects: readonly KubeObject[]): string[] {
  const name = nameOf(deployment);
  const problems: string[] = [];
  const picked = workloads(objects).filter((workload) => selects(deployment.spec.selector, labelsOf(workload)));
  if (!picked.includes(deployment)) problems.push(`${name}: its selector does not pick its own pods`);
  if (picked.length > 1) problems.push(`${name}: its selector picks pods of another`);
  const budgets = ofKind(objects, 'PodDisruptionBudget').filter((budget) => selects(budget.spec.selector, labelsOf(deployment)));
  if (budgets.length !== 1) problems.push(`${name}: ${budgets.length} PodDisruptionBudgets`);
  const autoscalers = ofKind(objects, 'HorizontalPodAutoscaler').filter(
    ({ spec }) => spec.scaleTargetRef.kind === 'Deployment' && spec.scaleTargetRef.name === deployment.metadata.name,
  );
  if (autoscalers.length !== 1) problems.push(`${name}: ${autoscalers.length} HorizontalPodAutoscalers`);
  // Each time it is applied, it would undo what the autoscaler has done.
  if (deployment.spec.replicas !== undefined) problems.push(`${name}: replicas is the autoscaler's`);
  return problems;
}

function serviceProblems(service: KubeObject, objects: readonly KubeObject[]): string[] {
  const backends = backendsOf(service, objects);
  if (backends.length === 0) return [`${nameOf(service)}: its selector picks no pods`];
  return service.spec.ports.flatMap(({ name, port, targetPort = port }: KubeObject) =>
    backends
      .filter((backend) => portNumber(backend, targetPort) === undefined)
      .map((backend) => `${nameOf(service)}: port ${name} leads to ${targetPort}, which ${nameOf(backend)} does not have`),
  );
}

/** A way in, to a port of a Service. */
interface Route {
  readonly from: string;
  readonly service: string;
  readonly port: { readonly name?: string; readonly number?: number };
}

/** Where Ingresses and HTTPRoutes lead. */
export function routes(objects: readonly KubeObject[]): Route[] {
  const ingresses = ofKind(objects, 'Ingress').flatMap((ingress) =>
    ingress.spec.rules.flatMap(({ http }: KubeObject) =>
      http.paths.map(({ backend: { service } }: KubeObject) => ({
        from: nameOf(ingress),
        service: service.name,
        port: service.port,
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

function routeProblems({ from, service, port }: Route, objects: readonly KubeObject[]): string[] {
  const target = find(objects, 'Service', service);
  if (!target) return [`${from}: there is no Service ${service}`];
  const isThere = target.spec.ports.some((each: KubeObject) => each.name === port.name || each.port === port.number);
  return isThere ? [] : [`${from}: Service ${service} has no port ${port.name ?? port.number}`];
}

function autoscalerProblems(autoscaler: KubeObject, objects: readonly KubeObject[]): string[] {
  const { scaleTargetRef, minReplicas, maxReplicas, metrics } = autoscaler.spec;
  const target = find(objects, scaleTargetRef.kind, scaleTargetRef.name);
  if (!target) return [`${nameOf(autoscaler)}: there is no ${scaleTargetRef.kind} ${scaleTargetRef.name}`];
  const problems: string[] = [];
  if (minReplicas < 2 || maxReplicas < minReplicas)
    problems.push(`${nameOf(autoscaler)}: from ${minReplicas} to ${maxReplicas} replicas`);
  for (const { resource } of metrics) {
    const lacks = containersOf(target).some(({ resources }) => resources?.requests?.[resource.name] === undefined);
    if (lacks) problems.push(`${nameOf(autoscaler)}: ${nameOf(target)} requests no ${resource.name} to be measured by`);
  }
  return problems;
}

function keyProblems(from: string, kind: string, ref: KubeObject, objects: readonly KubeObject[]): string[] {
  const source = find(objects, kind, ref.name);
  if (!source) return ref.optional ? [] : [`${from}: there is no ${kind} ${ref.name}`];
  return ref.key === undefined || ref.key in dataOf(source) ? [] : [`${from}: ${kind} ${ref.name} has no ${ref.key}`];
}

/** ConfigMaps and Secrets that a workload's containers take variables from, each with its kind. */
function sourcesOf(workload: KubeObject): Array<{ kind: string; ref: KubeObject }> {
  return containersOf(workload).flatMap(({ env = [], envFrom = [] }) =>
    [...envFrom, ...env.map(({ valueFrom }: KubeObject) => valueFrom ?? {})].flatMap((source: KubeObject) => {
      const configMap = source.configMapRef ?? source.configMapKeyRef;
      const secret = source.secretRef ?? source.secretKeyRef;
      return [
        ...(configMap ? [{ kind: 'ConfigMap', ref: configMap }] : []),
        ...(secret ? [{ kind: 'Secret', ref: secret }] : []),
      ];
    }),
  );
}

function sourceProblems(workload: KubeObject, objects: readonly KubeObject[]): string[] {
  const { serviceAccountName } = podOf(workload);
  return [
    ...sourcesOf(workload).flatMap(({ kind, ref }) => keyProblems(nameOf(workload), kind, ref, objects)),
    ...(find(objects, 'ServiceAccount', serviceAccountName)
      ? []
      : [`${nameOf(workload)}: there is no ServiceAccount ${serviceAccountName}`]),
  ];
}

function unusedSources(objects: readonly KubeObject[]): string[] {
  const used = new Set(
    workloads(objects).flatMap((workload) => sourcesOf(workload).map(({ kind, ref }) => `${kind} ${ref.name}`)),
  );
  return [...ofKind(objects, 'ConfigMap'), ...ofKind(objects, 'Secret')]
    .map(nameOf)
    .filter((name) => !used.has(name))
    .map((name) => `${name}: nothing uses it`);
}

function volumeProblems(workload: KubeObject, objects: readonly KubeObject[]): string[] {
  const { volumes = [] } = podOf(workload);
  const mounted = containersOf(workload).flatMap(({ volumeMounts = [] }) => volumeMounts.map(({ name }: KubeObject) => name));
  const problems = mounted
    .filter((name) => !volumes.some((volume: KubeObject) => volume.name === name))
    .map((name) => `${nameOf(workload)}: there is no volume ${name}`);
  for (const { name, persistentVolumeClaim, secret } of volumes) {
    if (!mounted.includes(name)) problems.push(`${nameOf(workload)}: volume ${name} is mounted nowhere`);
    const claim = persistentVolumeClaim?.claimName;
    if (claim && !find(objects, 'PersistentVolumeClaim', claim))
      problems.push(`${nameOf(workload)}: there is no PersistentVolumeClaim ${claim}`);
    if (secret && !isMade(secret.secretName, objects))
      problems.push(`${nameOf(workload)}: there is no Secret ${secret.secretName}`);
  }
  return problems;
}

/** Whether a secret exists, or is created for a certificate. */
function isMade(secretName: string, objects: readonly KubeObject[]): boolean {
  const certificates = ofKind(objects, 'Certificate').map(({ spec }) => spec.secretName);
  return find(objects, 'Secret', secretName) !== undefined || certificates.includes(secretName);
}
