import {
  backendsOf,
  containersOf,
  find,
  type KubeObject,
  labelsOf,
  nameOf,
  ofKind,
  portNumber,
  selects,
  workloads,
} from './objects.ts';
import { routes } from './references.ts';
import { environmentOf } from './settings.ts';

/** Settings that name what is outside, with their default ports. */
const OUTSIDE: Readonly<Record<string, number>> = {
  DATABASE_URL: 5432,
  REDIS_URL: 6379,
  S3_BUCKET: 443,
  OIDC_ISSUERS: 443,
  SMTP_URL: 587,
  OTEL_EXPORTER_OTLP_ENDPOINT: 4318,
};

/** Connections that are used and blocked by the policies, or allowed and never used. */
export function networkProblems(objects: readonly KubeObject[]): string[] {
  const policies = ofKind(objects, 'NetworkPolicy');
  const isDefault = ({ spec }: KubeObject) => Object.keys(spec.podSelector ?? {}).length === 0 && !spec.ingress && !spec.egress;
  return [
    ...(policies.some((policy) => isDefault(policy) && policy.spec.policyTypes.length === 2)
      ? []
      : ['nothing is denied by default']),
    ...policies.flatMap((policy) => selectorProblems(policy, objects)),
    ...insideProblems(objects),
    ...workloads(objects).flatMap((workload) => outsideProblems(workload, objects)),
    ...entryProblems(objects),
  ];
}

/** Selectors that select no pods of ours. */
function selectorProblems(policy: KubeObject, objects: readonly KubeObject[]): string[] {
  const { podSelector, ingress = [], egress = [] } = policy.spec;
  const peers: KubeObject[] = [...ingress.flatMap(({ from = [] }) => from), ...egress.flatMap(({ to = [] }) => to)];
  const own = peers.filter((peer) => peer.podSelector && !peer.namespaceSelector).map((peer) => peer.podSelector);
  return [podSelector, ...own]
    .filter((selector) => !workloads(objects).some((workload) => selects(selector, labelsOf(workload))))
    .map((selector) => `${nameOf(policy)}: ${JSON.stringify(selector)} selects no pods`);
}

/** Compares the calls between our pods with the policies of both ends. */
function insideProblems(objects: readonly KubeObject[]): string[] {
  const problems: string[] = [];
  const used = new Set<string>();
  const describe = (caller: KubeObject, callee: KubeObject, port: unknown) => `${nameOf(caller)} to ${nameOf(callee)}:${port}`;
  for (const caller of workloads(objects)) {
    for (const { name, value = '' } of containersOf(caller).flatMap(({ env = [] }): KubeObject[] => env)) {
      // Names with a dot are outside the namespace.
      if (!/^https?:\/\/[^.]+$/.test(value)) continue;
      const { hostname, port } = new URL(value);
      const service = find(objects, 'Service', hostname);
      const target = service?.spec.ports.find((each: KubeObject) => each.port === Number(port));
      if (!target) problems.push(`${nameOf(caller)}: ${name} names ${hostname}:${port}, which no Service has as a port`);
      for (const callee of target ? backendsOf(service, objects) : []) {
        used.add(describe(caller, callee, portNumber(callee, target.targetPort)));
      }
    }
  }
  const isPeer = (peer: KubeObject, workload: KubeObject) =>
    peer.podSelector !== undefined && peer.namespaceSelector === undefined && selects(peer.podSelector, labelsOf(workload));
  for (const caller of workloads(objects)) {
    for (const callee of workloads(objects)) {
      for (const { containerPort } of containersOf(callee).flatMap(({ ports = [] }): KubeObject[] => ports)) {
        const connection = describe(caller, callee, containerPort);
        const leaves = allows(caller, 'Egress', objects, (peer) => isPeer(peer, callee), containerPort);
        const enters = allows(callee, 'Ingress', objects, (peer) => isPeer(peer, caller), containerPort);
        if (used.has(connection) && !(leaves && enters)) problems.push(`${connection} is blocked`);
        if (!used.has(connection) && (leaves || enters)) problems.push(`${connection} is allowed and never used`);
      }
    }
  }
  return problems;
}

/** Compares what a process reaches outside, by its settings, with its policies. */
function outsideProblems(workload: KubeObject, objects: readonly KubeObject[]): string[] {
  const env: Record<string, string> = Object.assign({}, ...containersOf(workload).map((each) => environmentOf(each, objects)));
  const isOutside = (peer: KubeObject) => peer.ipBlock || peer.namespaceSelector;
  const reaches = (port: number, protocol?: string) => allows(workload, 'Egress', objects, isOutside, port, protocol);
  const used = new Set(usedOutside(workload, env).map((name) => portOf(name, env)));
  const problems = [...new Set([...used, ...Object.values(OUTSIDE)])]
    .filter((port) => reaches(port) !== used.has(port))
    .map((port) => `${nameOf(workload)}: port ${port} outside is ${used.has(port) ? 'blocked' : 'allowed and never used'}`);
  return reaches(53, 'UDP') && reaches(53) ? problems : [...problems, `${nameOf(workload)}: DNS is blocked`];
}

/** The settings of what a process reaches outside. A migration reaches its database only. */
function usedOutside(workload: KubeObject, env: Record<string, string>): string[] {
  const usesObjects =
    env.OBJECT_STORE === 's3' &&
    (labelsOf(workload)['app.kubernetes.io/component'] === 'files' ||
      containersOf(workload).some(({ command }) => command?.includes('avatar-worker')));
  return Object.keys(OUTSIDE).filter((name) => {
    if (!env[name]) return false;
    return workload.kind === 'Job' ? name === 'DATABASE_URL' : name !== 'S3_BUCKET' || usesObjects;
  });
}

function portOf(name: string, env: Record<string, string>): number {
  const value = name === 'S3_BUCKET' ? (env.S3_ENDPOINT ?? '') : (env[name] ?? '');
  if (!URL.canParse(value)) return OUTSIDE[name] ?? 0;
  const { port, protocol } = new URL(value);
  return Number(port) || ({ 'http:': 80, 'https:': 443 }[protocol] ?? OUTSIDE[name] ?? 0);
}

/** Services behind an Ingress or a route that are closed to other namespaces. */
function entryProblems(objects: readonly KubeObject[]): string[] {
  return routes(objects).flatMap(({ from, service, port }) => {
    const target = find(objects, 'Service', service);
    const entry = target?.spec.ports.find((each: KubeObject) => each.name === port.name || each.port === port.number);
    const isOpen = (backend: KubeObject) =>
      allows(backend, 'Ingress', objects, (peer) => peer.namespaceSelector, portNumber(backend, entry.targetPort) ?? 0);
    const closed = (entry ? backendsOf(target, objects) : []).filter((backend) => !isOpen(backend));
    return closed.map((backend) => `${from} leads to ${nameOf(backend)}, which is closed to it`);
  });
}

/** True if the policies of a workload allow a peer at a port. Without a policy, all are allowed. */
function allows(
  workload: KubeObject,
  direction: 'Ingress' | 'Egress',
  objects: readonly KubeObject[],
  accepts: (peer: KubeObject) => unknown,
  port: number,
  protocol = 'TCP',
): boolean {
  const policies = ofKind(objects, 'NetworkPolicy').filter(
    ({ spec }) => spec.policyTypes.includes(direction) && selects(spec.podSelector, labelsOf(workload)),
  );
  const rules: KubeObject[] = policies.flatMap(({ spec }) => (direction === 'Ingress' ? spec.ingress : spec.egress) ?? []);
  const hasPort = ({ ports = [] }: KubeObject) =>
    ports.some((each: KubeObject) => each.port === port && (each.protocol ?? 'TCP') === protocol);
  return policies.length === 0 || rules.some((rule) => hasPort(rule) && (rule.from ?? rule.to ?? []).some(accepts));
}
