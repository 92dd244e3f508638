import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { networkProblems } from './kubernetes/network.ts';
import { type KubeObject, ofKind } from './kubernetes/objects.ts';
import { podProblems, probeProblems } from './kubernetes/pods.ts';
import { referenceProblems } from './kubernetes/references.ts';
import { type Extension, findRenderers, KUBERNETES_DIR, type Renderer, renderExample, renderWith } from './kubernetes/render.ts';
import { routeProblems } from './kubernetes/routes.ts';
import { modelProblems, schemaProblems } from './kubernetes/schema.ts';
import { settingProblems, unreadSettings, withSecrets } from './kubernetes/settings.ts';

const renderers = await findRenderers();
const renderer = renderers[0] as Renderer;
if (!renderer) process.stderr.write('The manifests for Kubernetes are not tested: neither kustomize nor kubectl runs here.\n');

const METRICS_TOKEN = { secretGenerator: [{ name: 'latchkey-metrics', literals: ['METRICS_TOKEN=CHANGE_ME'] }] };

const EXTENSIONS: ReadonlyArray<readonly [string, Extension]> = [
  ['the example', {}],
  ['files on a volume', { components: ['disk'] }],
  ['routes of the Gateway API', { components: ['gateway-api'] }],
  ['callers from elsewhere', { components: ['grpc-callers'] }],
  [
    'sign-in by OpenID Connect',
    {
      components: ['oidc'],
      secretGenerator: [
        {
          name: 'latchkey-oidc',
          literals: ['OIDC_ISSUERS=acme', 'OIDC_ACME_ISSUER=https://id.acme.example', 'OIDC_ACME_CLIENT_ID=latchkey'],
        },
      ],
    },
  ],
  [
    'traces',
    {
      components: ['tracing'],
      configMapGenerator: [
        {
          name: 'latchkey-settings',
          behavior: 'merge',
          literals: ['OTEL_EXPORTER_OTLP_ENDPOINT=http://collector.observability:4318'],
        },
      ],
    },
  ],
  ['metrics', { components: ['metrics'], ...METRICS_TOKEN }],
];

type Check = (objects: readonly KubeObject[]) => string[] | Promise<string[]>;

// Renderers and the compiler are processes of their own, which a busy machine may keep waiting.
describe.skipIf(!renderer)('manifests for Kubernetes', { timeout: 60_000 }, () => {
  describe.each(EXTENSIONS)('%s', (_, extension) => {
    let rendered: KubeObject[];
    beforeAll(async () => {
      rendered = withSecrets(await renderExample(renderer, extension));
    });

    it.each<[string, Check]>([
      ['holds to the types of Kubernetes, and has no field that they do not know', schemaProblems],
      ['passes the validation of each kind', modelProblems],
      ['names nothing that is not there', referenceProblems],
      ['lets through every call that the services make, and no other', networkProblems],
      ['gives each process settings that it accepts', settingProblems],
      ['sets nothing that nothing reads', unreadSettings],
      ['runs each process with no more rights than it needs, and stops it in order', podProblems],
      ['leads each path where it belongs, for as long as an upload takes', routeProblems],
    ])('%s', async (_guarantee, problemsOf) => {
      expect(await problemsOf(rendered)).toEqual([]);
    });
  });

  // Certificates are files, which only a cluster has; what else the services would say of their settings, they say before that.
  it.each([[['service-tls']], [['metrics', 'service-tls']]])(
    'are as sound with TLS between the services, certificates aside: %j',
    async (components) => {
      const objects = withSecrets(await renderExample(renderer, { components, ...METRICS_TOKEN }));
      expect(ofKind(objects, 'Deployment').flatMap(probeProblems)).toEqual([]);
      const checks: readonly Check[] = [schemaProblems, modelProblems, referenceProblems, networkProblems, unreadSettings];
      for (const problemsOf of checks) expect(await problemsOf(objects)).toEqual([]);
      const problems = settingProblems(objects);
      const missing = ofKind(objects, 'Deployment').flatMap(({ metadata: { name } }) =>
        ['CERT', 'KEY', 'CA'].map((file) => `Deployment ${name}: SERVICE_TLS_${file}_FILE can't be read (ENOENT)`),
      );
      expect(problems.sort()).toEqual(missing.sort());
    },
  );

  it('have a base that renders by itself, to the types of Kubernetes', async () => {
    const objects = await renderWith(renderer, join(KUBERNETES_DIR, 'base'));
    const names = ofKind(objects, 'Deployment').map(({ metadata }) => metadata.name);
    expect(names.sort()).toEqual(['apps', 'avatar-worker', 'files', 'gateway', 'identity', 'realtime']);
    expect(await schemaProblems(objects)).toEqual([]);
  });

  it('have every process refuse the placeholders that the example comes with', async () => {
    const problems = settingProblems(await renderExample(renderer));
    const refusedBy = (name: string) =>
      problems.flatMap((problem) => new RegExp(`^Deployment ${name}: (\\w+) `).exec(problem)?.[1] ?? []);
    expect(refusedBy('gateway').sort()).toEqual(['REDIS_URL', 'SERVICE_CREDENTIALS', 'TRUSTED_PROXIES']);
    expect(refusedBy('realtime').sort()).toEqual(['REDIS_URL', 'SERVICE_CREDENTIALS', 'TRUSTED_PROXIES']);
    expect(refusedBy('identity').sort()).toEqual(['DATABASE_URL', 'REDIS_URL', 'SECRET_KEY', 'SERVICE_CREDENTIALS']);
  });

  it('name in comments what the processes read, with values that they accept', async () => {
    const text = await readFile(join(KUBERNETES_DIR, 'overlays/example/settings.env'), 'utf8');
    const literals = [...text.matchAll(/^# ([A-Z0-9_]+=\S.*)$/gm)].map(([, setting]) => setting);
    expect(literals.length).toBeGreaterThan(10);
    const configMapGenerator = [{ name: 'latchkey-settings', behavior: 'merge', literals }];
    const objects = withSecrets(await renderExample(renderer, { configMapGenerator }));
    expect([...unreadSettings(objects), ...settingProblems(objects)]).toEqual([]);
  });

  it('have the files service refuse one credential of the object store without the other, as the example has it', async () => {
    const objects = withSecrets(await renderExample(renderer));
    const store = ofKind(objects, 'Secret').find(({ metadata }) => metadata.name.startsWith('latchkey-object-store'));
    store.data.S3_SECRET_ACCESS_KEY = '';
    expect(settingProblems(objects)).toContain(
      'Deployment files: S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY must be set both or not at all',
    );
  });

  it.skipIf(renderers.length < 2).each(EXTENSIONS)(
    'render the same with an old kustomize and with the one in kubectl: %s',
    async (_, extension) => {
      const [old, current] = await Promise.all(renderers.map((each) => renderExample(each, extension)));
      expect(current).toEqual(old);
    },
  );
});
