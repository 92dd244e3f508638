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

/** Variables that lead outside, with their default ports. */
const OUTSIDE: Readonly<Record<string, number>> = {
  DATABASE_URL: 5432,
  REDIS_URL: 6379,
  S3_BUCKET: 443,
  OIDC_ISSUERS: 443,
  OTEL_EXPORTER_OTLP_ENDPOINT: 4318,
};

/** A connection that a process opens to another's. */
interface Call {
  readonly caller: KubeObject;
  readonly callee: KubeObject;
  readonly port: number;
}

/** Calls that the policies block, and connections that they allow although no call needs them. */
export function networkProblems(objects: readonly KubeObject[]): string[] {
  const { calls, problems } = callsOf(objects);
  return [
    ...problems,
    ...policyProblems(objects),
    ...calls
      .filter((call) => !isAllowed(call, objects))
      .map(({ caller, callee, port }) => `${nameOf(caller)} can't reach ${nameOf(callee)} at ${port}`),
    ...needlessCalls(calls, objects),
    ...workloads(objects).flatMap((workload) => outsideProblems(workload, objects)),
    ...wayInProblems(objects),
  ];
}

/**
 * What the processes call, by their settings. Migrations read the same settings and call no
 * service.
 */
function callsOf(objects: readonly KubeObject[]): { calls: Call[]; problems: string[] } {
  const calls: Call[] = [];
  const problems: string[] = [];
  for (const caller of ofKind(objects, 'Deployment')) {
    const values = containersOf(caller).flatMap(({ env = [] }) => env.map(({ name, value = '' }: KubeObject) => [name, value]));
    for (const [name, value] of values) {
      if (!/^https?:/.test(value)) continue;
      const { hostname, port } = new URL(value);
      const service = find(objects, 'Service', hostname);
      const target = service?.spec.ports.find((each: KubeObject) => each.port === Number(port));
      if (!target) problems.push(`${nameOf(caller)}: ${name} leads to ${hostname}:${port}, where no Service is`);
      for (const callee of target ? backendsOf(service, objects) : []) {
        calls.push({ caller, callee, port: portNumber(callee, target.targetPort) ?? 0 });
      }
    }
  }
  return { calls, problems };
}

/** Policies that select no pods, or ports that these do not have. */
function policyProblems(objects: readonly KubeObject[]): string[] {
  const policies = ofKind(objects, 'NetworkPolicy');
  const problems = policies.some(
    ({ spec }) => isEmpty(spec.podSelector) && !spec.ingress && !spec.egress && spec.policyTypes.length === 2,
  )
    ? []
    : ['no NetworkPolicy denies by default'];
  for (const policy of policies) {
    const picked = workloads(objects).filter((workload) => selects(policy.spec.podSelector, labelsOf(workload)));
    if (picked.length === 0) problems.push(`${nameOf(policy)}: it picks no pods`);
    for (const value of [policy.spec.podSelector, ...peersOf(policy).map((peer) => peer.podSelector)].flatMap(namedComponents)) {
      const isThere = workloads(objects).some((workload) => labelsOf(workload)['app.kubernetes.io/component'] === value);
      if (!isThere && !isElsewhere(policy, value)) problems.push(`${nameOf(policy)}: there is no ${value}`);
    }
    for (const { ports = [] } of policy.spec.ingress ?? []) {
      for (const { port } of ports) {
        if (!picked.some((workload) => portNumber(workload, port) === port))
          problems.push(`${nameOf(policy)}: nobody whom it picks has port ${port}`);
      }
    }
  }
  return problems;
}

const isEmpty = (selector: KubeObject) => Object.keys(selector ?? {}).length === 0;

function peersOf({ spec }: KubeObject): KubeObject[] {
  return [...(spec.ingress ?? []).flatMap(({ from = [] }) => from), ...(spec.egress ?? []).flatMap(({ to = [] }) => to)];
}

function namedComponents(selector: KubeObject): string[] {
  const key = 'app.kubernetes.io/component';
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  return [
    ...(matchLabels[key] ? [matchLabels[key]] : []),
    ...matchExpressions.filter((each: KubeObject) => each.key === key).flatMap(({ values }: KubeObject) => values),
  ];
}

function isElsewhere(policy: KubeObject, component: string): boolean {
  return peersOf(policy).some((peer) => peer.namespaceSelector && namedComponents(peer.podSelector).includes(component));
}

/**
 * Whether a policy of a workload in a direction has a rule that is accepted. Without a policy,
 * everything is allowed.
 */
function allows(
  workload: KubeObject,
  direction: 'Ingress' | 'Egress',
  objects: readonly KubeObject[],
  accepts: (peer: KubeObject, ports: KubeObject[]) => boolean,
): boolean {
  const policies = ofKind(objects, 'NetworkPolicy').filter(
    ({ spec }) => spec.policyTypes.includes(direction) && selects(spec.podSelector, labelsOf(workload)),
  );
  if (policies.length === 0) return true;
  return policies.some(({ spec }) =>
    (direction === 'Ingress' ? spec.ingress : spec.egress)?.some(({ from, to, ports = [] }: KubeObject) =>
      (from ?? to ?? []).some((peer: KubeObject) => accepts(peer, ports)),
    ),
  );
}

const hasPort = (ports: KubeObject[], port: number, protocol = 'TCP') =>
  ports.some((each) => each.port === port && (each.protocol ?? 'TCP') === protocol);

const isPeer = (peer: KubeObject, workload: KubeObject) =>
  peer.podSelector !== undefined && peer.namespaceSelector === undefined && selects(peer.podSelector, labelsOf(workload));

function isAllowed({ caller, callee, port }: Call, objects: readonly KubeObject[]): boolean {
  return (
    allows(caller, 'Egress', objects, (peer, ports) => isPeer(peer, callee) && hasPort(ports, port)) &&
    allows(callee, 'Ingress', objects, (peer, ports) => isPeer(peer, caller) && hasPort(ports, port))
  );
}

/** Connections between our pods that either end allows and no call needs. */
function needlessCalls(calls: readonly Call[], objects: readonly KubeObject[]): string[] {
  const problems: string[] = [];
  for (const caller of workloads(objects)) {
    for (const callee of workloads(objects)) {
      for (const port of containersOf(callee).flatMap(({ ports = [] }) =>
        ports.map(({ containerPort }: KubeObject) => containerPort),
      )) {
        if (calls.some((call) => call.caller === caller && call.callee === callee && call.port === port)) continue;
        const leaves = allows(caller, 'Egress', objects, (peer, ports) => isPeer(peer, callee) && hasPort(ports, port));
        const enters = allows(callee, 'Ingress', objects, (peer, ports) => isPeer(peer, caller) && hasPort(ports, port));
        if (leaves || enters) problems.push(`${nameOf(caller)} may reach ${nameOf(callee)} at ${port}, and never does`);
      }
    }
  }
  return problems;
}

/**
 * Whether the database, Redis, the object store, issuers, a collector and DNS are reachable where
 * used, and nowhere else.
 */
function outsideProblems(workload: KubeObject, objects: readonly KubeObject[]): string[] {
  const reaches = (port: number, protocol?: string) =>
    allows(
      workload,
      'Egress',
      objects,
      (peer, ports) => (peer.ipBlock || peer.namespaceSelector) && hasPort(ports, port, protocol),
    );
  const env: Record<string, string> = Object.assign(
    {},
    ...containersOf(workload).map((container) => environmentOf(container, objects)),
  );
  const names = usedOutside(workload, env);
  const wanted = new Map(names.map((name) => [portOf(name, env), name]));
  return [
    ...(reaches(53, 'UDP') && reaches(53, 'TCP') ? [] : [`${nameOf(workload)} can't reach DNS`]),
    ...[...wanted].filter(([port]) => !reaches(port)).map(([port, name]) => `${nameOf(workload)} can't reach ${name} at ${port}`),
    ...[...new Set(Object.values(OUTSIDE))]
      .filter((port) => !wanted.has(port) && reaches(port))
      .map((port) => `${nameOf(workload)} may reach port ${port} outside, and never does`),
  ];
}

/** The settings of what a process reaches outside. A migration reaches its database only. */
function usedOutside(workload: KubeObject, env: Record<string, string>): string[] {
  const takesObjects =
    labelsOf(workload)['app.kubernetes.io/component'] === 'files' ||
    containersOf(workload).some(({ command }) => command?.includes('avatar-worker'));
  return Object.keys(OUTSIDE).filter((name) => {
    if (!env[name]) return false;
    if (workload.kind === 'Job') return name === 'DATABASE_URL';
    return name !== 'S3_BUCKET' || (takesObjects && env.OBJECT_STORE === 's3');
  });
}

function portOf(name: string, env: Record<string, string>): number {
  const value = name === 'S3_BUCKET' ? (env.S3_ENDPOINT ?? '') : (env[name] ?? '');
  if (!URL.canParse(value)) return OUTSIDE[name] ?? 0;
  const { port, protocol } = new URL(value);
  return Number(port) || ({ 'http:': 80, 'https:': 443 }[protocol] ?? OUTSIDE[name] ?? 0);
}

/** Services behind an Ingress or a route that are closed to other namespaces. */
function wayInProblems(objects: readonly KubeObject[]): string[] {
  return routes(objects).flatMap(({ from, service, port }) => {
    const target = find(objects, 'Service', service);
    const way = target?.spec.ports.find((each: KubeObject) => each.name === port.name || each.port === port.number);
    return (way ? backendsOf(target, objects) : [])
      .filter((backend) => {
        const number = portNumber(backend, way.targetPort) ?? 0;
        return !allows(backend, 'Ingress', objects, (peer, ports) => peer.namespaceSelector && hasPort(ports, number));
      })
      .map((backend) => `${from} leads to ${nameOf(backend)}, which lets nobody in`);
  });
}
