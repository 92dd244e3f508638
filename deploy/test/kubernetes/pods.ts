import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { containersOf, type KubeObject, labelsOf, nameOf, ofKind, podOf, selects, workloads } from './objects.ts';
import { configOf, environmentOf } from './settings.ts';

const DOCKERFILE = join(import.meta.dirname, '..', '..', 'Dockerfile');

/** The user that the image is made for. */
const IMAGE_USER = Number(/^USER (\d+):\d+$/m.exec(readFileSync(DOCKERFILE, 'utf8'))?.[1]);

/** Security of all pods; ports, probes, stops and migrations of the services. */
export function expectSafePods(objects: readonly KubeObject[]): void {
  for (const workload of workloads(objects)) {
    expect(podOf(workload), nameOf(workload)).toMatchObject({
      securityContext: { runAsNonRoot: true, runAsUser: IMAGE_USER, seccompProfile: { type: 'RuntimeDefault' } },
      automountServiceAccountToken: false,
      // Variables of Services would be taken for settings.
      enableServiceLinks: false,
    });
    const given = expect.anything();
    for (const container of containersOf(workload)) {
      expect(container, nameOf(workload)).toMatchObject({
        securityContext: { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
        resources: { requests: { cpu: given, memory: given }, limits: { memory: given } },
        image: expect.stringMatching(/(:(?!latest$)[\w.-]+|@sha256:[0-9a-f]{64})$/),
      });
    }
  }
  for (const deployment of ofKind(objects, 'Deployment')) {
    const [container] = containersOf(deployment);
    expectPorts(container, objects);
    expectProbes(container);
    expectOrderlyStop(deployment, objects);
    expectMigration(container, objects);
    expectScaling(deployment, objects);
  }
}

/** Settings of the ports that a process listens at, which are those that are declared. */
const PORT_SETTINGS = ['PORT', 'GRPC_PORT', 'REALTIME_PORT', 'METRICS_PORT'];

function expectPorts(container: KubeObject, objects: readonly KubeObject[]): void {
  const env = environmentOf(container, objects);
  const listened = PORT_SETTINGS.filter((name) => env[name]).map((name) => Number(env[name]));
  const { HOST, REALTIME_HOST = HOST } = configOf(container, objects);
  expect([HOST, REALTIME_HOST]).toEqual(['0.0.0.0', '0.0.0.0']);
  expect(container.ports.map(({ containerPort }: KubeObject) => containerPort).sort()).toEqual(listened.sort());
}

function expectProbes({ startupProbe, livenessProbe, readinessProbe, ports }: KubeObject): void {
  const portOf = (wanted: string) => ports.find(({ name }: KubeObject) => name === wanted)?.containerPort;
  // One that depends on the database would start every process again while the database is away.
  expect([startupProbe.httpGet.path, livenessProbe.httpGet.path]).toEqual(['/healthz', '/healthz']);
  if (readinessProbe.grpc) expect(readinessProbe.grpc.port).toBe(portOf('grpc'));
  else expect(readinessProbe.httpGet.path).toBe('/readyz');
  for (const { httpGet } of [startupProbe, livenessProbe, readinessProbe])
    if (httpGet) expect(portOf(httpGet.port)).toBeDefined();
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

function expectOrderlyStop(deployment: KubeObject, objects: readonly KubeObject[]): void {
  // A pod goes once its successor is ready, and stops once it is sent no more requests.
  expect(deployment.spec.strategy.rollingUpdate.maxUnavailable).toBe(0);
  const sleepSeconds = containersOf(deployment)[0].lifecycle.preStop.sleep.seconds;
  expect(sleepSeconds).toBeGreaterThanOrEqual(5);
  const graceSeconds = podOf(deployment).terminationGracePeriodSeconds;
  expect(graceSeconds, nameOf(deployment)).toBeGreaterThan(sleepSeconds + stopSeconds(deployment, objects));
}

/**
 * Services with a schema leave it to a Job of the same image, which runs before an installation and
 * an upgrade, and not at a rollback.
 */
function expectMigration(container: KubeObject, objects: readonly KubeObject[]): void {
  const env = environmentOf(container, objects);
  if (!env.DATABASE_URL) return;
  expect(env.MIGRATE_ON_START).toBe('false');
  const command = ['node', container.command[1], 'migrate'];
  const job = ofKind(objects, 'Job').find((each) => containersOf(each)[0].command.join() === command.join());
  expect(job && containersOf(job)[0].image).toBe(container.image);
  expect(job?.metadata.annotations['helm.sh/hook']).toBe('pre-install,pre-upgrade');
}

/** Two replicas at least, which an autoscaler sets, and of which some stay during a drain. */
function expectScaling(deployment: KubeObject, objects: readonly KubeObject[]): void {
  const isSelectedBy = (selector: KubeObject) => selects(selector, labelsOf(deployment));
  const { selector, replicas } = deployment.spec;
  expect(workloads(objects).filter((workload) => selects(selector, labelsOf(workload)))).toEqual([deployment]);
  expect(ofKind(objects, 'PodDisruptionBudget').filter(({ spec }) => isSelectedBy(spec.selector))).toHaveLength(1);
  const autoscalers = ofKind(objects, 'HorizontalPodAutoscaler').map(({ spec }) => spec);
  const [own, ...others] = autoscalers.filter(({ scaleTargetRef }) => scaleTargetRef.name === deployment.metadata.name);
  expect([others, replicas]).toEqual([[], undefined]);
  expect(own.minReplicas).toBeGreaterThanOrEqual(2);
  expect(own.maxReplicas).toBeGreaterThanOrEqual(own.minReplicas);
}
