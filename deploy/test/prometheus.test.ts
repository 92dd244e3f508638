import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { ofKind } from './kubernetes/objects.ts';
import { findRenderers, type Renderer, renderExample } from './kubernetes/render.ts';

const PROMETHEUS_DIR = join(import.meta.dirname, '..', 'prometheus');
const read = (name: string) => readFileSync(join(PROMETHEUS_DIR, name), 'utf8');
const [renderer] = await findRenderers();

/** Names of the jobs that alerts go by. */
const jobs = [...new Set([...read('alerts.yml').matchAll(/job="([^"]*)"/g)].map(([, job]) => job))];

it('alerts go by the job that Prometheus collects metrics with', () => {
  const { scrape_configs } = parse(read('prometheus.yml')) as { scrape_configs: Array<{ job_name: string }> };
  expect(scrape_configs.map(({ job_name }) => job_name)).toEqual(jobs);
});

it.skipIf(!renderer)(
  'alerts go by the job that the Prometheus operator makes of the pods',
  async () => {
    const secretGenerator = [{ name: 'latchkey-metrics', literals: ['METRICS_TOKEN=CHANGE_ME'] }];
    const rendered = await renderExample(renderer as Renderer, { components: ['metrics'], secretGenerator });
    const [monitor] = ofKind(rendered, 'PodMonitor');
    const labels = ofKind(rendered, 'Deployment').map(({ spec }) => spec.template.metadata.labels[monitor?.spec.jobLabel]);
    expect(labels.length).toBeGreaterThan(5);
    expect([...new Set(labels)]).toEqual(jobs);
  },
  60_000,
);
