import { describe } from 'vitest';
import { canRender, data, eachMutant, variable } from './kubernetes/mutants.ts';
import { networkProblems } from './kubernetes/network.ts';

describe.skipIf(!canRender)('network policies', () => {
  eachMutant(networkProblems, [
    [
      'a way out that is closed',
      ({ get }) => get('NetworkPolicy', 'gateway').spec.egress.pop(),
      "Deployment gateway can't reach Deployment files at 8084",
    ],
    [
      'a way in that is closed',
      ({ get }) => get('NetworkPolicy', 'apps').spec.ingress[0].from.shift(),
      "Deployment gateway can't reach Deployment apps at 8082",
    ],
    [
      'a way to the wrong port',
      ({ get }) => (get('NetworkPolicy', 'apps').spec.ingress[0].ports[0].port = 9082),
      "Deployment realtime can't reach Deployment apps at 8082",
    ],
    [
      'a way that nobody takes',
      ({ get }) => get('NetworkPolicy', 'files').spec.ingress[0].from.push({ podSelector: {} }),
      'Deployment realtime may reach Deployment files at 8084, and never does',
    ],
    [
      'a call that the policies were not told of',
      ({ container }) => container('realtime').env.push({ name: 'FILES_URL', value: 'http://files:8084' }),
      "Deployment realtime can't reach Deployment files at 8084",
    ],
    [
      'an address where no Service is',
      (manifests) => (variable(manifests, 'gateway', 'APPS_URL').value = 'http://apps:8080'),
      'Deployment gateway: APPS_URL leads to apps:8080, where no Service is',
    ],
    [
      'a component that does not exist',
      ({ get }) => get('NetworkPolicy', 'to-redis').spec.podSelector.matchExpressions[0].values.push('worker'),
      'NetworkPolicy to-redis: there is no worker',
    ],
    [
      'a policy that picks nobody',
      ({ get }) => (get('NetworkPolicy', 'files').spec.podSelector.matchLabels = { app: 'files' }),
      'NetworkPolicy files: it picks no pods',
    ],
    [
      'all that is not denied',
      ({ objects, get }) => objects.splice(objects.indexOf(get('NetworkPolicy', 'default-deny')), 1),
      'no NetworkPolicy denies by default',
    ],
    [
      'DNS that is closed',
      ({ get }) => get('NetworkPolicy', 'dns').spec.egress[0].ports.shift(),
      "Job migrate-apps-0.1.0 can't reach DNS",
    ],
    [
      'a database at another port',
      (manifests) =>
        (data(manifests, 'latchkey-database-apps').DATABASE_URL = Buffer.from('postgres://u:p@h:6432/d').toString('base64')),
      "Deployment apps can't reach DATABASE_URL at 6432",
    ],
    [
      'a collector that nobody reaches',
      (manifests) => (data(manifests, 'latchkey-settings').OTEL_EXPORTER_OTLP_ENDPOINT = 'http://collector.observability:4318'),
      "Deployment realtime can't reach OTEL_EXPORTER_OTLP_ENDPOINT at 4318",
    ],
    [
      'issuers that are not reached',
      ({ container }) => container('identity').env.push({ name: 'OIDC_ISSUERS', value: 'acme' }),
      "Deployment identity can't reach OIDC_ISSUERS at 443",
    ],
    [
      'a way to issuers for those who ask none',
      ({ get }) => get('NetworkPolicy', 'to-object-store').spec.podSelector.matchExpressions[0].values.push('identity'),
      'Deployment identity may reach port 443 outside, and never does',
    ],
    [
      'a way out that nobody needs',
      ({ get }) => get('NetworkPolicy', 'to-postgresql').spec.podSelector.matchExpressions[0].values.push('gateway'),
      'Deployment gateway may reach port 5432 outside, and never does',
    ],
    [
      'sockets that the ingress controller may not open',
      ({ get }) => get('NetworkPolicy', 'from-ingress-controller').spec.ingress[0].ports.pop(),
      'Ingress latchkey leads to Deployment realtime, which lets nobody in',
    ],
  ]);
});
