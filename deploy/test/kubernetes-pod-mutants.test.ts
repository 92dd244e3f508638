import { describe } from 'vitest';
import { canRender, data, eachMutant, type Manifests, variable } from './kubernetes/mutants.ts';
import { podOf } from './kubernetes/objects.ts';
import { podProblems } from './kubernetes/pods.ts';

describe.skipIf(!canRender)('pods', () => {
  const pod = ({ get }: Manifests, name: string) => podOf(get('Deployment', name));
  eachMutant(podProblems, [
    [
      'a pod that may be root',
      (manifests) => (pod(manifests, 'apps').securityContext.runAsNonRoot = false),
      'Deployment apps: it may run as root',
    ],
    [
      "a user who is not the image's",
      (manifests) => (pod(manifests, 'apps').securityContext.runAsUser = 1000),
      "Deployment apps: its user is not the image's",
    ],
    [
      'no seccomp profile',
      (manifests) => delete pod(manifests, 'apps').securityContext.seccompProfile,
      'Deployment apps: it has no seccomp profile',
    ],
    [
      'a token',
      ({ get }) => delete podOf(get('Job', 'migrate-files-0.1.0')).automountServiceAccountToken,
      'Job migrate-files-0.1.0: it gets a service account token',
    ],
    [
      'variables of Services',
      (manifests) => delete pod(manifests, 'realtime').enableServiceLinks,
      'Deployment realtime: it gets variables of Services, which are taken for settings',
    ],
    [
      'a file system to write to',
      ({ container }) => delete container('files').securityContext.readOnlyRootFilesystem,
      'Deployment files: its file system can be written to',
    ],
    [
      'privileges to gain',
      ({ container }) => delete container('files').securityContext.allowPrivilegeEscalation,
      'Deployment files: it may gain privileges',
    ],
    [
      'capabilities',
      ({ container }) => (container('files').securityContext.capabilities.drop = []),
      'Deployment files: it keeps capabilities',
    ],
    [
      'no bound of memory',
      ({ container }) => delete container('files').resources.limits,
      'Deployment files: its resources are not bounded',
    ],
    [
      'an image that changes',
      ({ container }) => (container('apps').image = 'registry.example.com/latchkey:latest'),
      'Deployment apps: its image registry.example.com/latchkey:latest is no certain one',
    ],
    [
      'a port that nobody listens at',
      ({ container }) => (container('realtime').ports[0].containerPort = 8080),
      'Deployment realtime: 8080 is declared, and it does not listen there',
    ],
    [
      'a port that is not declared',
      (manifests) => (variable(manifests, 'files', 'PORT').value = '8085'),
      'Deployment files: it listens at 8085, which is not declared',
    ],
    [
      'liveness that depends on the database',
      ({ container }) => (container('apps').livenessProbe = { grpc: { port: 9082 } }),
      'Deployment apps: its liveness depends on others',
    ],
    [
      'no readiness',
      ({ container }) => delete container('apps').readinessProbe,
      'Deployment apps: nobody asks whether it is ready',
    ],
    [
      'no start to wait for',
      ({ container }) => delete container('apps').startupProbe,
      'Deployment apps: its start is not waited for',
    ],
    [
      'a probe of gRPC where none is spoken',
      ({ container }) => (container('apps').readinessProbe.grpc.port = 8082),
      'Deployment apps: 8082 does not speak gRPC',
    ],
    [
      'a probe of a port that is not there',
      ({ container }) => (container('gateway').readinessProbe.httpGet.port = 'web'),
      'Deployment gateway: there is no port web to ask',
    ],
    [
      'a rollout that takes a pod away first',
      ({ get }) => (get('Deployment', 'files').spec.strategy.rollingUpdate.maxUnavailable = 1),
      'Deployment files: a pod goes before its successor is ready',
    ],
    [
      'a stop that comes too early',
      ({ container }) => delete container('files').lifecycle,
      'Deployment files: it stops while it is still sent requests',
    ],
    [
      'a stop that is cut short',
      (manifests) => (pod(manifests, 'gateway').terminationGracePeriodSeconds = 200),
      'Deployment gateway: it is killed after 200 s, and its stop may take 230 s',
    ],
    [
      'uploads that may take longer than a stop',
      (manifests) => (data(manifests, 'latchkey-settings').UPLOAD_DEADLINE_SECONDS = '200'),
      'Deployment files: it is killed after 240 s, and its stop may take 240 s',
    ],
    [
      'calls that may take longer than a stop',
      (manifests) => (pod(manifests, 'apps').terminationGracePeriodSeconds = 60),
      'Deployment apps: it is killed after 60 s, and its stop may take 85 s',
    ],
    [
      'a gateway that drains for longer',
      (manifests) => (data(manifests, 'latchkey-settings').DRAIN_SECONDS = '20'),
      'Deployment gateway: it is killed after 240 s, and its stop may take 240 s',
    ],
    [
      'a service that migrates by itself',
      (manifests) => (variable(manifests, 'apps', 'MIGRATE_ON_START').value = 'true'),
      'Deployment apps: it migrates by itself',
    ],
    [
      'a schema that nothing migrates',
      ({ get }) => get('Job', 'migrate-files-0.1.0').spec.template.spec.containers[0].command.pop(),
      'Deployment avatar-worker: no Job migrates its schema',
    ],
    [
      'a migration of another release',
      ({ get }) => (get('Job', 'migrate-apps-0.1.0').spec.template.spec.containers[0].image = 'latchkey:0.0.9'),
      'Job migrate-apps-0.1.0: it runs latchkey:0.0.9, not registry.example.com/latchkey:0.1.0',
    ],
    [
      'a migration whose name stays the same',
      ({ get }) => (get('Job', 'migrate-apps-0.1.0').metadata.name = 'migrate-apps'),
      'Job migrate-apps: its name does not tell its release',
    ],
  ]);
});
