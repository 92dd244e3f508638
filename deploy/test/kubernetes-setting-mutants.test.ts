import { describe } from 'vitest';
import { canRender, data, eachMutant, type Manifests, variable } from './kubernetes/mutants.ts';
import { routeProblems } from './kubernetes/routes.ts';
import { settingProblems, unreadSettings } from './kubernetes/settings.ts';

const ANNOTATION = 'nginx.ingress.kubernetes.io/';
const annotationsOf = ({ get }: Manifests) => get('Ingress', 'latchkey').metadata.annotations;

describe.skipIf(!canRender)('settings', () => {
  eachMutant(settingProblems, [
    [
      'one that a service requires',
      ({ container }) =>
        (container('gateway').env = container('gateway').env.filter(({ name }: { name: string }) => name !== 'FILES_URL')),
      'Deployment gateway: FILES_URL is required',
    ],
    [
      'one that is wrong',
      (manifests) => (variable(manifests, 'files', 'AVATAR_WORKER').value = 'outside'),
      'Deployment files: AVATAR_WORKER must be inside or apart',
    ],
    [
      'one that a migration requires',
      (manifests) => delete data(manifests, 'latchkey-database-files').DATABASE_URL,
      'Job migrate-files-0.1.0: DATABASE_URL is required',
    ],
    [
      'a program that is not ours',
      ({ container }) => (container('apps').command[1] = 'services/app/src/main.ts'),
      'Deployment apps: node services/app/src/main.ts runs none of our programs',
    ],
  ]);
  eachMutant(unreadSettings, [
    [
      'one that its service does not know',
      (manifests) => (variable(manifests, 'realtime', 'GRPC_PORT').name = 'GPRC_PORT'),
      'Deployment realtime: nothing reads GPRC_PORT',
    ],
    [
      'a shared one that no service knows',
      (manifests) => (data(manifests, 'latchkey-settings').LOGLEVEL = 'debug'),
      /^ConfigMap latchkey-settings-\w+: nothing reads LOGLEVEL$/,
    ],
    [
      'a secret that none of those who get it knows',
      (manifests) => (data(manifests, 'latchkey-sealing').S3_KEY = ''),
      /^Secret latchkey-sealing-\w+: nothing reads S3_KEY$/,
    ],
  ]);
});

describe.skipIf(!canRender)('the way in', () => {
  const paths = ({ get }: Manifests) => get('Ingress', 'latchkey').spec.rules[0].http.paths;
  eachMutant(routeProblems, [
    ['none', ({ objects, get }) => objects.splice(objects.indexOf(get('Ingress', 'latchkey')), 1), '0 ways in'],
    [
      'sockets that go to the gateway',
      (manifests) => paths(manifests).shift(),
      'Ingress latchkey: /api/v1/realtime does not lead to realtime',
    ],
    ['REST that goes nowhere', (manifests) => paths(manifests).pop(), 'Ingress latchkey: / does not lead to gateway'],
    [
      'a time that is shorter than an upload',
      (manifests) => (annotationsOf(manifests)['haproxy.org/timeout-server'] = '60s'),
      'Ingress latchkey: it waits 60 s, and an upload takes up to 195 s',
    ],
    [
      'uploads that may take longer',
      (manifests) => (data(manifests, 'latchkey-settings').UPLOAD_DEADLINE_SECONDS = '285'),
      'Ingress latchkey: it waits 300 s, and an upload takes up to 300 s',
    ],
    [
      'a time that is not set',
      (manifests) => delete annotationsOf(manifests)[`${ANNOTATION}proxy-read-timeout`],
      `Ingress latchkey: ${ANNOTATION}proxy-read-timeout is not set`,
    ],
    [
      'bodies that are kept back',
      (manifests) => (annotationsOf(manifests)[`${ANNOTATION}proxy-request-buffering`] = 'on'),
      `Ingress latchkey: ${ANNOTATION}proxy-request-buffering is not off`,
    ],
    [
      'a size that the gateway would say better',
      (manifests) => (annotationsOf(manifests)[`${ANNOTATION}proxy-body-size`] = '8m'),
      `Ingress latchkey: ${ANNOTATION}proxy-body-size is not 0`,
    ],
    ['no class', ({ get }) => delete get('Ingress', 'latchkey').spec.ingressClassName, 'Ingress latchkey: it has no class'],
    [
      'no certificate',
      ({ get }) => delete get('Ingress', 'latchkey').spec.tls,
      'Ingress latchkey: no certificate for latchkey.example.com',
    ],
    [
      'another host than clients are told',
      (manifests) => (data(manifests, 'latchkey-settings').PUBLIC_URL = 'https://example.com'),
      'Ingress latchkey: PUBLIC_URL has another host',
    ],
    [
      'clients that are all one address',
      (manifests) => delete data(manifests, 'latchkey-settings').TRUSTED_PROXIES,
      'Deployment gateway: TRUSTED_PROXIES is not set, so that all clients are one address',
    ],
  ]);
});
