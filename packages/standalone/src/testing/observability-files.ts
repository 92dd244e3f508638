import { readFile } from 'node:fs/promises';
import { parser } from '@prometheus-io/lezer-promql';
import { parse } from 'yaml';

const ROOT = new URL('../../../../', import.meta.url);
const read = (path: string) => readFile(new URL(path, ROOT), 'utf8');

/** An alert as Prometheus reads it. */
export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook: string };
}

export async function readAlerts(): Promise<AlertRule[]> {
  const { groups } = parse(await read('deploy/prometheus/alerts.yml')) as { groups: Array<{ rules: AlertRule[] }> };
  return groups.flatMap(({ rules }) => rules);
}

/** What all panels of the dashboard ask, with Grafana's own variables filled in as it does. */
export async function readDashboardQueries(): Promise<string[]> {
  const { panels } = JSON.parse(await read('deploy/grafana/latchkey.json')) as {
    panels: Array<{ targets?: Array<{ expr: string }> }>;
  };
  return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '1m')));
}

/** The anchors of a document's headings, as they are made of them on the usual hosts. */
export async function readAnchors(path: string): Promise<string[]> {
  const headings = [...(await read(path)).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
}

/** The metrics and the labels that a query names; throws where it is no PromQL. */
export function namesIn(query: string): { readonly metrics: string[]; readonly labels: string[] } {
  const [metrics, labels]: [string[], string[]] = [[], []];
  parser.parse(query).iterate({
    enter({ type, name, from, to }) {
      if (type.isError) throw new Error(`no PromQL at ${from}: ${query}`);
      if (name === 'Identifier') metrics.push(query.slice(from, to));
      if (name === 'LabelName') labels.push(query.slice(from, to));
    },
  });
  return { metrics, labels };
}
