import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { containersOf, type KubeObject, labelsOf, nameOf, ofKind, podOf, portNumber, workloads } from './objects.ts';
import { configOf, environmentOf } from './settings.ts';

const DOCKERFILE = join(import.meta.dirname, '..', '..', 'Dockerfile');

/** The user that the image is made for. */
const IMAGE_USER = Number(/^USER (\d+):\d+$/m.exec(readFileSync(DOCKERFILE, 'utf8'))?.[1]);

/** Missing security, shutdown and probe settings. */
export function podProblems(objects: readonly KubeObject[]): string[] {
  return [
    ...workloads(objects).flatMap((workload) =>
      [...securityProblems(workload), ...portProblems(workload, objects)].map((problem) => `${nameOf(workload)}: ${problem}`),
    ),
    ...ofKind(objects, 'Deployment').flatMap((deployment) =>
      [...probeProblems(deployment), ...stopProblems(deployment, objects)].map((problem) => `${nameOf(deployment)}: ${problem}`),
    ),
    ...migrationProblems(objects),
  ];
}

function securityProblems(workload: KubeObject): string[] {
  const pod = podOf(workload);
  const security = pod.securityContext ?? {};
  const problems: string[] = [];
  if (security.runAsNonRoot !== true) problems.push('it may run as root');
  if (security.runAsUser !== IMAGE_USER) problems.push(`its user is not the image's`);
  if (security.seccompProfile?.type !== 'RuntimeDefault') problems.push('it has no seccomp profile');
  if (pod.automountServiceAccountToken !== false) problems.push('it gets a service account token');
  if (pod.enableServiceLinks !== false) problems.push('it gets variables of Services, which are taken for settings');
  for (const { image, securityContext = {}, resources = {} } of containersOf(workload)) {
    if (securityContext.readOnlyRootFilesystem !== true) problems.push('its file system can be written to');
    if (securityContext.allowPrivilegeEscalation !== false) problems.push('it may gain privileges');
    if (!securityContext.capabilities?.drop?.includes('ALL')) problems.push('it has capabilities');
    if (!resources.requests?.cpu || !resources.requests?.memory || !resources.limits?.memory)
      problems.push('its resources are not bounded');
    if (!/(:(?!latest$)[\w.-]+|@sha256:[0-9a-f]{64})$/.test(image)) problems.push(`its image ${image} has no fixed version`);
  }
  return problems;
}

/** Variables that a process listens at, whose ports are what is declared. */
const PORT_SETTINGS = ['PORT', 'GRPC_PORT', 'REALTIME_PORT', 'METRICS_PORT'];

function portProblems(workload: KubeObject, objects: readonly KubeObject[]): string[] {
  if (workload.kind !== 'Deployment') return [];
  return containersOf(workload).flatMap((container) => {
    const env = environmentOf(container, objects);
    const listened = PORT_SETTINGS.filter((name) => env[name]).map((name) => Number(env[name]));
    const { HOST, REALTIME_HOST = HOST } = configOf(container, objects);
    const declared: number[] = (container.ports ?? []).map(({ containerPort }: KubeObject) => containerPort);
    return [
      ...[HOST, REALTIME_HOST].filter((host) => host !== '0.0.0.0').map((host) => `other pods can't call it at ${host}`),
      ...listened.filter((port) => !declared.includes(port)).map((port) => `it listens at ${port}, which is not declared`),
      ...declared.filter((port) => !listened.includes(port)).map((port) => `${port} is declared, and it does not listen there`),
    ];
  });
}

const usesPath = (probe: KubeObject, path: string) =>
  probe.httpGet?.path === path || probe.exec?.command?.includes(path.slice(1));

export function probeProblems(deployment: KubeObject): string[] {
  const problems: string[] = [];
  for (const { startupProbe = {}, livenessProbe = {}, readinessProbe = {} } of containersOf(deployment)) {
    if (!usesPath(startupProbe, '/healthz')) problems.push('its start is not waited for');
    // One that depends on the database would start every process again while the database is away.
    if (!usesPath(livenessProbe, '/healthz')) problems.push('its liveness depends on others');
    if (!usesPath(readinessProbe, '/readyz') && readinessProbe.grpc === undefined) problems.push('its readiness is not checked');
    for (const probe of [startupProbe, livenessProbe, readinessProbe]) {
      const port = probe.grpc?.port ?? probe.httpGet?.port;
      if (port !== undefined && portNumber(deployment, port) === undefined) problems.push(`its port ${port} is not declared`);
      if (probe.grpc && portNumber(deployment, 'grpc') !== probe.grpc.port)
        problems.push(`${probe.grpc.port} does not speak gRPC`);
    }
  }
  return problems;
}

/**
 * Longest ordered stop of services whose stop waits for neither uploads nor calls of clients, in
 * seconds.
 */
const STOP_SECONDS: Readonly<Record<string, number>> = { apps: 75, identity: 75, 'avatar-worker': 40, realtime: 25 };
const CALL_SECONDS = 60;
const STOP_SLACK_SECONDS = 30;

function stopSeconds(deployment: KubeObject, objects: readonly KubeObject[]): number {
  const { UPLOAD_DEADLINE_SECONDS = 0, DRAIN_SECONDS = 0 } = configOf(containersOf(deployment)[0], objects);
  const component = labelsOf(deployment)['app.kubernetes.io/component'] ?? '';
  const longest = Math.max(UPLOAD_DEADLINE_SECONDS, CALL_SECONDS) + STOP_SLACK_SECONDS;
  return STOP_SECONDS[component] ?? longest + (component === 'gateway' ? DRAIN_SECONDS : 0);
}

function stopProblems(deployment: KubeObject, objects: readonly KubeObject[]): string[] {
  const problems: string[] = [];
  const { maxUnavailable } = deployment.spec.strategy?.rollingUpdate ?? {};
  if (maxUnavailable !== 0) problems.push('a pod goes before its successor is ready');
  const sleeps = containersOf(deployment).map(({ lifecycle }) => lifecycle?.preStop?.sleep?.seconds ?? 0);
  if (sleeps.some((seconds) => seconds < 5)) problems.push('it stops while it is still sent requests');
  const graceSeconds = podOf(deployment).terminationGracePeriodSeconds ?? 30;
  const neededSeconds = Math.max(...sleeps) + stopSeconds(deployment, objects);
  if (graceSeconds <= neededSeconds)
    problems.push(`it is killed after ${graceSeconds} s, and its stop may take ${neededSeconds} s`);
  return problems;
}

/**
 * Services with a schema leave it to a Job of the same image, which runs before an installation and
 * an upgrade, and not at a rollback.
 */
function migrationProblems(objects: readonly KubeObject[]): string[] {
  const problems: string[] = [];
  const jobs = ofKind(objects, 'Job');
  for (const deployment of ofKind(objects, 'Deployment')) {
    const [container] = containersOf(deployment);
    const env = environmentOf(container, objects);
    if (!env.DATABASE_URL) continue;
    if (env.MIGRATE_ON_START !== 'false') problems.push(`${nameOf(deployment)}: it migrates by itself`);
    const job = jobs.find((each) => containersOf(each)[0].command.join(' ') === `node ${container.command[1]} migrate`);
    if (!job) {
      problems.push(`${nameOf(deployment)}: no Job migrates its schema`);
      continue;
    }
    const { image } = containersOf(job)[0];
    if (image !== container.image) problems.push(`${nameOf(job)}: it runs ${image}, not ${container.image}`);
    if (job.metadata.annotations?.['helm.sh/hook'] !== 'pre-install,pre-upgrade')
      problems.push(`${nameOf(job)}: it runs too late`);
  }
  return problems;
}
