import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { parseEnv, readComposeText } from './compose/compose-file.ts';
import { judge, kubeconform, kubeLinter, validate } from './kubernetes/judges.ts';
import { networkProblems } from './kubernetes/network.ts';
import { containersOf, type KubeObject, ofKind } from './kubernetes/objects.ts';
import { expectSafePods } from './kubernetes/pods.ts';
import { referenceProblems } from './kubernetes/references.ts';
import { HELM_DIR, missingHelm, render } from './kubernetes/render.ts';
import { expectOneWayIn } from './kubernetes/routes.ts';
import { environmentOf, settingProblems, unreadSettings, withSecrets } from './kubernetes/settings.ts';

const PROXIES = { TRUSTED_PROXIES: '10.244.7.0/24' };
const ALL = {
  settings: {
    ...PROXIES,
    OBJECT_STORE: 'disk',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector.observability:4318',
  },
  ingress: { enabled: false },
  gatewayApi: { enabled: true },
  oidc: { existingSecret: 'latchkey-oidc' },
  secrets: { SMTP_URL: { existingSecret: 'latchkey-mail' }, REDIS_EVENTS_URL: { existingSecret: 'latchkey-events' } },
  workloads: {
    identity: { settings: { MAIL_FROM: 'latchkey@example.com' } },
    realtime: { autoscaling: { socketsPerPod: 10_000 } },
  },
  metrics: { enabled: true },
  extraEnv: [{ name: 'OTEL_EXPORTER_OTLP_HEADERS', valueFrom: { secretKeyRef: { name: 'latchkey-traces', key: 'HEADERS' } } }],
  extraVolumes: [{ name: 'authority', secret: { secretName: 'latchkey-authority' } }],
  extraVolumeMounts: [{ name: 'authority', mountPath: '/etc/authority' }],
  pod: { nodeSelector: { 'kubernetes.io/os': 'linux' } },
  networkPolicy: { grpcCallers: [{ namespaceSelector: { matchLabels: { 'latchkey-grpc-caller': 'true' } } }] },
};
const OPTIONAL_SECRETS = {
  'latchkey-oidc': { OIDC_ISSUERS: 'acme', OIDC_ACME_ISSUER: 'https://id.acme.example', OIDC_ACME_CLIENT_ID: 'latchkey' },
  'latchkey-events': { REDIS_EVENTS_URL: 'redis://events.example.com:6379' },
  'latchkey-traces': { HEADERS: 'authorization=Bearer%20token' },
  'latchkey-authority': {},
  'latchkey-mail': { SMTP_URL: 'smtp://latchkey:secret@mail.example.com' },
};
const CHECKS = [referenceProblems, networkProblems, unreadSettings, settingProblems];
const problemsOf = (objects: readonly KubeObject[], checks = CHECKS) => checks.flatMap((check) => check(objects));
const reasonOf = (program: string | { readonly unavailable: string }) =>
  missingHelm ?? (typeof program === 'string' ? undefined : program.unavailable);
const because = (reason?: string) => (reason ? ` (${reason})` : '');

describe(`the Helm chart${because(missingHelm)}`, {
  skip: missingHelm !== undefined,
  timeout: 120_000,
  meta: { needs: 'Helm' },
}, () => {
  let secrets: Record<string, string>;
  let example: KubeObject[];
  let all: KubeObject[];
  let tls: KubeObject[];
  let evaluation: KubeObject[];
  beforeAll(async () => {
    secrets = parseEnv(await readFile(join(HELM_DIR, 'example', 'secrets.env'), 'utf8'));
    [example, all, tls, evaluation] = await Promise.all([
      render({ settings: PROXIES }),
      render(ALL),
      render({ settings: PROXIES, serviceTls: { enabled: true } }),
      render({ evaluation: { enabled: true } }, []),
    ]);
  }, 120_000);

  it('names what exists, allows the calls that are made and no others, and stops in order', () => {
    const { METRICS_TOKEN, ...used } = secrets;
    const { S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY, ...usedOnDisk } = secrets;
    const filled = [withSecrets(example, { latchkey: used }), withSecrets(all, { latchkey: usedOnDisk, ...OPTIONAL_SECRETS })];
    for (const objects of filled) {
      expect(problemsOf(objects)).toEqual([]);
      expectSafePods(objects);
      expectOneWayIn(objects);
    }
  });

  it('brings what migrations reach before other policies exist', () => {
    const hooks = example.filter(({ metadata }) => metadata.annotations?.['helm.sh/hook']?.startsWith('pre-install'));
    expect(networkProblems(withSecrets(hooks, { latchkey: secrets }))).toEqual(['nothing is denied by default']);
  });

  // The certificates are files that only a cluster has.
  it('is valid with TLS between the services', () => {
    const objects = withSecrets(tls, { latchkey: secrets });
    expect(problemsOf(objects, CHECKS.slice(0, 3))).toEqual([]);
    const missing = ofKind(objects, 'Deployment').flatMap(({ metadata: { name } }) =>
      ['CERT', 'KEY', 'CA'].map((file) => `Deployment ${name}: SERVICE_TLS_${file}_FILE can't be read (ENOENT)`),
    );
    expect(settingProblems(objects).sort()).toEqual(missing.sort());
    // The kubelet has no client certificate.
    const probed = ofKind(objects, 'Deployment').map((deployment) => {
      const [{ startupProbe, livenessProbe, readinessProbe }] = containersOf(deployment);
      const ports = [startupProbe, livenessProbe, readinessProbe].map((probe) => probe.httpGet?.port);
      return [deployment.metadata.name, [...new Set(ports)]];
    });
    for (const [name, ports] of probed) expect([name, ports]).toEqual([name, [name === 'gateway' ? 'http' : 'metrics']]);
  });

  it('starts an evaluation with its own servers, secrets and migrations, in the versions of Compose', () => {
    expect(settingProblems(evaluation.filter(({ metadata }) => metadata.name !== 'evaluation'))).toEqual([]);
    const [identity] = ofKind(evaluation, 'Deployment').filter(({ metadata }) => metadata.name === 'identity');
    expect(environmentOf(containersOf(identity)[0], evaluation)).toMatchObject({
      MIGRATE_ON_START: 'true',
      DATABASE_URL: expect.stringMatching(/^postgres:\/\/postgres:\w{40}@evaluation:5432\/latchkey$/),
    });
    const [servers] = ofKind(evaluation, 'Deployment').filter(({ metadata }) => metadata.name === 'evaluation');
    for (const { image } of containersOf(servers)) expect(readComposeText()).toContain(`image: ${image}\n`);
  });

  it('lets identity reach public issuers where accounts may trust them', async () => {
    const objects = withSecrets(await render({ settings: PROXIES, trustedIssuers: { enabled: true } }), { latchkey: secrets });
    // No setting names the issuers of accounts.
    expect(networkProblems(objects)).toEqual(['Deployment identity: port 443 outside is allowed and never used']);
  });

  it('adds environment, volumes and fields of pods to every process and migration', () => {
    for (const { spec } of [...ofKind(all, 'Deployment'), ...ofKind(all, 'Job')]) {
      const [{ env, volumeMounts }] = spec.template.spec.containers;
      expect(env).toContainEqual(ALL.extraEnv[0]);
      expect(volumeMounts).toContainEqual(ALL.extraVolumeMounts[0]);
      expect(spec.template.spec).toMatchObject(ALL.pod);
    }
  });

  it('rejects unknown values, and none for the URL and the proxies', async () => {
    await expect(render({ workload: {} })).rejects.toThrow(/dditional propert.*workload/);
    await expect(render({}, [])).rejects.toThrow(/settings\.PUBLIC_URL is required/);
    await expect(render({ settings: { TRUSTED_PROXIES: '' } })).rejects.toThrow(/settings\.TRUSTED_PROXIES is required/);
  });

  it('makes every process reject the placeholders of the example', async () => {
    const objects = [...(await render()), { kind: 'Secret', metadata: { name: 'latchkey' }, stringData: secrets }];
    const problems = settingProblems(objects);
    const rejectedBy = (name: string) =>
      problems.flatMap((problem) => new RegExp(`^Deployment ${name}: (\\w+) `).exec(problem)?.[1] ?? []).sort();
    expect(rejectedBy('gateway')).toEqual(['REDIS_URL', 'SERVICE_CREDENTIALS', 'TRUSTED_PROXIES']);
    expect(rejectedBy('realtime')).toEqual(['REDIS_URL', 'SERVICE_CREDENTIALS', 'TRUSTED_PROXIES']);
    expect(rejectedBy('identity')).toEqual(['DATABASE_URL', 'REDIS_URL', 'SECRET_KEY', 'SERVICE_CREDENTIALS']);
  });

  it('names in comments of the example settings that the processes read, with values that they accept', async () => {
    const text = await readFile(join(HELM_DIR, 'example', 'values.yaml'), 'utf8');
    const commented = [...text.matchAll(/^ {2}# ([A-Z0-9_]+): (\S.*)$/gm)].map(([, name = '', value = '']) => [name, value]);
    expect(commented.length).toBeGreaterThan(8);
    const rendered = await render({ settings: { ...PROXIES, ...Object.fromEntries(commented) } });
    const objects = withSecrets(rendered, { latchkey: secrets });
    expect([...unreadSettings(objects), ...settingProblems(objects)]).toEqual([]);
  });

  it('takes an image by tag and digest, and writes large numbers as they are', async () => {
    const digest = `sha256:${'ab'.repeat(32)}`;
    const objects = await render({ image: { tag: '2.0.0-rc.1', digest }, settings: { ...PROXIES, SOCKETS_MAX: 1_000_000 } });
    for (const object of [...ofKind(objects, 'Job'), ...ofKind(objects, 'Deployment')]) {
      expect(containersOf(object)[0].image).toBe(`registry.example.com/latchkey:2.0.0-rc.1@${digest}`);
    }
    const [realtime] = ofKind(objects, 'Deployment').filter(({ metadata }) => metadata.name === 'realtime');
    expect(environmentOf(containersOf(realtime)[0], objects).SOCKETS_MAX).toBe('1000000');
  });

  it('gives every alert its runbook, and Prometheus the name of the job that they use', async () => {
    const [{ spec }] = ofKind(all, 'PrometheusRule') as [KubeObject];
    const rules: KubeObject[] = spec.groups.flatMap((group: KubeObject) => group.rules);
    expect(rules.filter(({ alert, annotations }) => annotations.runbook_url !== `docs/alerts.md#${alert.toLowerCase()}`)).toEqual(
      [],
    );
    const jobs = [...new Set(rules.flatMap(({ expr }) => [...expr.matchAll(/job="([^"]*)"/g)].map(([, job]) => job)))];
    const scraping = await readFile(join(HELM_DIR, '..', 'prometheus', 'prometheus.yml'), 'utf8');
    expect([...scraping.matchAll(/job_name: (\S+)/g)].map(([, job]) => job)).toEqual(jobs);
    const [monitor] = ofKind(all, 'ServiceMonitor');
    const scraped = ofKind(all, 'Service').filter(({ spec: { ports } }) =>
      ports.some(({ name }: KubeObject) => name === 'metrics'),
    );
    expect(scraped).toHaveLength(6);
    expect([...new Set(scraped.map(({ metadata }) => metadata.labels[monitor?.spec.jobLabel]))]).toEqual(jobs);
  });

  const unjudged = reasonOf(kubeconform);
  it.skipIf(unjudged)(`has no field that Kubernetes does not have, by kubeconform${because(unjudged)}`, async () => {
    const objects = [...example, ...all, ...tls, ...evaluation];
    expect(await validate(kubeconform as string, objects)).toEqual({
      code: 0,
      output: expect.stringContaining(`Valid: ${objects.length}, Invalid: 0, Errors: 0, Skipped: 0`),
    });
  });

  const unlinted = reasonOf(kubeLinter);
  it.skipIf(unlinted)(`has no finding of kube-linter${because(unlinted)}`, async () => {
    for (const objects of [example, all, tls, evaluation]) {
      expect(await judge(kubeLinter as string, ['lint'], objects)).toMatchObject({ code: 0 });
    }
  });
});
