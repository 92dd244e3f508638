import { describe, expect, it } from 'vitest';
import { canRender, eachMutant, mutable } from './kubernetes/mutants.ts';
import { containersOf, type KubeObject, nameOf, podOf } from './kubernetes/objects.ts';
import { referenceProblems } from './kubernetes/references.ts';
import { modelProblems, schemaProblems } from './kubernetes/schema.ts';

describe.skipIf(!canRender)('types', { timeout: 60_000 }, () => {
  const rows: ReadonlyArray<readonly [string, string, string, (object: KubeObject) => void, RegExp]> = [
    [
      'a misspelt probe',
      'Deployment',
      'apps',
      (it) => (containersOf(it)[0].readinesProbe = {}),
      /readinesProbe.* does not exist/,
    ],
    [
      'a misspelt field of a pod',
      'Job',
      'migrate-apps-0.1.0',
      (it) => (podOf(it).restartPolcy = 'Never'),
      /restartPolcy.* does not exist/,
    ],
    ['a misspelt field of a port', 'Service', 'apps', (it) => (it.spec.ports[0].targetport = 1), /targetport.* does not exist/],
    [
      'a misspelt behaviour',
      'HorizontalPodAutoscaler',
      'realtime',
      (it) => (it.spec.behavior.scaledown = {}),
      /scaledown.* does not exist/,
    ],
    ['a misspelt direction', 'NetworkPolicy', 'files', (it) => (it.spec.egres = []), /egres.* does not exist/],
    ['a misspelt budget', 'PodDisruptionBudget', 'files', (it) => (it.spec.maxUnavailble = 1), /maxUnavailble.* does not exist/],
    [
      'a misspelt path type',
      'Ingress',
      'latchkey',
      (it) => (it.spec.rules[0].http.paths[0].pathtype = 'Exact'),
      /pathtype.* does not exist/,
    ],
    ['a misspelt field of metadata', 'ServiceAccount', 'latchkey', (it) => (it.metadata.label = {}), /label.* does not exist/],
    [
      'a number as text',
      'Deployment',
      'files',
      (it) => (podOf(it).terminationGracePeriodSeconds = '240'),
      /not assignable to type 'number'/,
    ],
    [
      'a variable that is no text',
      'Deployment',
      'gateway',
      (it) => (containersOf(it)[0].env[0].value = 8080),
      /not assignable to type 'string'/,
    ],
    ['a template that is missing', 'Deployment', 'identity', (it) => delete it.spec.template, /"template".* is missing/],
  ];

  it('refuses each misspelt, missing or mistaken field', async () => {
    const broken = await Promise.all(
      rows.map(async ([, kind, name, mutate]) => {
        const object = (await mutable()).get(kind, name);
        mutate(object);
        return object;
      }),
    );
    const problems = await schemaProblems(broken);
    for (const [index, [row, , , , finding]] of rows.entries()) {
      const found = problems.filter((problem) => problem.startsWith(`${nameOf(broken[index])}: `));
      expect(
        found.some((problem) => finding.test(problem)),
        row,
      ).toBe(true);
    }
  });

  it('refuses values that a type can hold and a kind does not allow', async () => {
    const { objects, get } = await mutable();
    get('Service', 'apps').spec.ports[0].port = 8082.5;
    expect(await modelProblems(objects)).toEqual([expect.stringMatching(/^Service apps: .*port/)]);
  });
});

describe.skipIf(!canRender)('references', () => {
  eachMutant(referenceProblems, [
    [
      'a selector of a Service',
      ({ get }) => (get('Service', 'files').spec.selector = { app: 'x' }),
      'Service files: its selector picks no pods',
    ],
    [
      'a port of a container that is called something else',
      ({ container }) => (container('apps').ports[1].name = 'rpc'),
      'Service apps: port grpc leads to grpc, which Deployment apps does not have',
    ],
    [
      'a selector that picks pods of another',
      ({ get }) => (get('Deployment', 'apps').spec.selector.matchLabels = { 'app.kubernetes.io/name': 'latchkey' }),
      'Deployment apps: its selector picks pods of another',
    ],
    [
      'labels that the selector does not pick',
      ({ get }) => (get('Deployment', 'apps').spec.template.metadata.labels = {}),
      'Deployment apps: its selector does not pick its own pods',
    ],
    [
      'a service of an Ingress',
      ({ get }) => (get('Ingress', 'latchkey').spec.rules[0].http.paths[0].backend.service.name = 'sockets'),
      'Ingress latchkey: there is no Service sockets',
    ],
    [
      'a port of an Ingress',
      ({ get }) => (get('Ingress', 'latchkey').spec.rules[0].http.paths[2].backend.service.port.name = 'web'),
      'Ingress latchkey: Service gateway has no port web',
    ],
    [
      'a target of an autoscaler',
      ({ get }) => (get('HorizontalPodAutoscaler', 'files').spec.scaleTargetRef.name = 'file'),
      'HorizontalPodAutoscaler files: there is no Deployment file',
    ],
    [
      'replicas beside an autoscaler',
      ({ get }) => (get('Deployment', 'files').spec.replicas = 2),
      "Deployment files: replicas is the autoscaler's",
    ],
    [
      'a request that is measured by',
      ({ container }) => delete container('files').resources.requests.cpu,
      'HorizontalPodAutoscaler files: Deployment files requests no cpu to be measured by',
    ],
    [
      'a selector of a disruption budget',
      ({ get }) => (get('PodDisruptionBudget', 'realtime').spec.selector.matchLabels = { app: 'realtime' }),
      'Deployment realtime: 0 PodDisruptionBudgets',
    ],
    [
      'the name of a secret',
      ({ container }) => (container('gateway').envFrom[1].secretRef.name = 'latchkey-intern'),
      'Deployment gateway: there is no Secret latchkey-intern',
    ],
    [
      'the key of a secret',
      ({ container, get }) => {
        const { name } = container('gateway').envFrom[1].secretRef;
        delete get('Secret', name).data.REDIS_URL;
        container('gateway').env.push({ name: 'REDIS_URL', valueFrom: { secretKeyRef: { name, key: 'REDIS_URL' } } });
      },
      /^Deployment gateway: Secret latchkey-internal-\w+ has no REDIS_URL$/,
    ],
    [
      'the name of a service account',
      ({ get }) => (podOf(get('Deployment', 'apps')).serviceAccountName = 'default'),
      'Deployment apps: there is no ServiceAccount default',
    ],
    [
      'a mount without a volume',
      ({ container }) => (container('files').volumeMounts = [{ name: 'objects', mountPath: '/objects' }]),
      'Deployment files: there is no volume objects',
    ],
    ['an object that is there twice', ({ objects, get }) => objects.push(get('Service', 'apps')), 'Service apps: there are two'],
  ]);
});
