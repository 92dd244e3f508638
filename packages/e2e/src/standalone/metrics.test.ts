import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { eventually } from '@latchkey/testkit/eventually';
import { parser } from '@prometheus-io/lezer-promql';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { plain, uploadAvatar } from '../client/avatars.ts';
import { createApplication, createKey, type Key, type Owner, signUp, unique } from '../client/caller.ts';
import { upload } from '../client/files.ts';
import { LiveClient, readSocketKey, setSetting } from '../client/live.ts';
import { uploadHead } from '../client/routes.ts';
import { type Scrape, scrape } from '../client/scrape.ts';
import { type DedicatedInstance, startDedicatedInstance } from '../instance/dedicated-instance.ts';

const METRICS_TOKEN = 'a-token-of-the-tests-for-metrics-alone';
const RUNBOOK = 'docs/alerts.md';
const DASHBOARD = fileURLToPath(new URL('../../../../deploy/grafana/dashboard.mjs', import.meta.url));

let instance: DedicatedInstance;
let owner: Owner;
let key: Key;
let applicationId: string;
beforeAll(async () => {
  instance = await startDedicatedInstance({ env: { METRICS_PORT: '0', METRICS_TOKEN, AUTH_ATTEMPTS_PER_MINUTE: '5' } });
  owner = await signUp(instance.api);
  key = await createKey(owner);
  applicationId = await createApplication(key.api);
  return () => instance.stop();
});

const scrapeAll = () => scrape(instance.metricsUrls, METRICS_TOKEN);

/** Scrapes until the check passes. */
async function seen(check: (scraped: Scrape) => void): Promise<Scrape> {
  const attempt = async () => {
    const scraped = await scrapeAll();
    check(scraped);
    return scraped;
  };
  return eventually(attempt, { timeoutMs: 15_000, intervalMs: 200 });
}

describe('metrics', () => {
  it('count requests by route and status, and calls by method and code, without ids, addresses and words of clients', async () => {
    const path = unique('/nowhere-');
    await fetch(instance.baseUrl + path);
    await owner.session.patch(`/api/v1/panel/api-keys/${applicationId}`, { name: 'Another' });
    const wrong = { email: owner.email, password: 'a wrong password' };
    for (let i = 0; i < 6; i += 1) await instance.api.post('/api/v1/auth/sign-in', wrong);
    const { samples } = await seen(({ sum }) => {
      const requests = 'latchkey_http_request_duration_seconds_count';
      expect(sum(requests, { method: 'any', route: 'unmatched', status: '404' })).toBeGreaterThanOrEqual(1);
      expect(sum(requests, { method: 'PATCH', route: '/api/v1/panel/api-keys/:id', status: '404' })).toBe(1);
      const method = { service: 'latchkey.identity.v1.ApiKeyService', method: 'UpdateApiKey' };
      expect(sum('latchkey_rpc_server_duration_seconds_count', { ...method, code: 'not_found' })).toBe(1);
      expect(sum('latchkey_rpc_server_duration_seconds_count', { code: 'ok' })).toBeGreaterThan(3);
      expect(sum('latchkey_sign_in_failures_total', { reason: 'sign_in_failed' })).toBe(5);
      expect(sum('latchkey_rate_limit_rejections_total', { limit: 'sign-in' })).toBe(1);
    });
    const texts = samples.flatMap(({ labels }) => Object.values(labels)).join('\n');
    for (const word of [path, owner.email, owner.username, '127.0.0.1', key.text]) expect(texts).not.toContain(word);
    expect(texts).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-/);
  });

  it('count uploads, avatars, sockets, events, jobs and connections', async () => {
    const client = new LiveClient(instance.realtimeUrl, await readSocketKey(owner.session, applicationId));
    await client.ready();
    expect(await new LiveClient(instance.realtimeUrl, 'lk_sock_wrong').ended).toBe(401);
    expect((await upload(key.api, applicationId, unique(), Buffer.alloc(100_000, 'x'))).status).toBe(200);
    const headers = { ...uploadHead(applicationId, unique(), 10), 'content-type': 'application/offset+octet-stream' };
    expect((await key.api.post('/api/v1/panel/uploads', Buffer.alloc(10), {}, { headers })).status).toBe(201);
    await setSetting(key.api, applicationId, 'version', '2.0');
    await eventually(() => expect(client.events).toHaveLength(1));
    const expected: ReadonlyArray<readonly [string, number, Record<string, string>?]> = [
      ['latchkey_upload_bytes_total', 100_010],
      ['latchkey_uploads_total', 2, { outcome: 'stored' }],
      ['latchkey_upload_chunks_total', 1, { outcome: 'stored' }],
      ['latchkey_uploads_running', 0],
      ['latchkey_object_store_duration_seconds_count', 1, { operation: 'put', outcome: 'ok' }],
      ...['files', 'identity', 'avatar'].map((queue) => ['latchkey_queue_jobs', 0, { queue }] as const),
      ['latchkey_event_delivery_lag_seconds_count', 1],
      ['latchkey_outbox_waiting_events', 0],
      ['latchkey_outbox_oldest_seconds', 0],
      ['latchkey_sockets_open', 1],
      ['latchkey_socket_applications', 1],
      ['latchkey_events_sent_total', 1],
      ['latchkey_upgrades_rejected_total', 1, { reason: 'socket_key_invalid' }],
      ...['apps', 'identity', 'files'].map((schema) => ['latchkey_database_connections_max', 10, { schema }] as const),
      ['latchkey_redis_connections', 0, { state: 'down' }],
    ];
    await seen(({ sum }) => {
      for (const [name, value, labels] of expected) expect(sum(name, labels), `${name} ${labels?.queue}`).toBe(value);
    });
    client.ws.terminate();
    expect((await uploadAvatar(owner.session, await plain(20, 20).png().toBuffer())).status).toBe(200);
    await seen((scraped) => expect(scraped.sum('latchkey_avatar_decode_duration_seconds_count', { outcome: 'ok' })).toBe(1));
    const done = { queue: 'avatar', outcome: 'done' };
    await seen((scraped) => expect(scraped.sum('latchkey_queue_job_duration_seconds_count', done)).toBe(1));
    await seen((scraped) => expect(scraped.sum('latchkey_sockets_closed_total', { code: '1006' })).toBe(1));
  });

  it('are what the dashboard and the alerts query, in PromQL, and every alert has a section of the runbook', async () => {
    expect(instance.metricsUrls).toHaveLength(instance.shape === 'deployed' ? 5 : 1);
    const { types, samples } = await scrapeAll();
    const { groups } = parse(await readRepository('deploy/prometheus/alerts.yml')) as { groups: Array<{ rules: AlertRule[] }> };
    const alerts = groups.flatMap(({ rules }) => rules);
    const { panels } = JSON.parse(execFileSync(process.execPath, [DASHBOARD], { encoding: 'utf8' })) as {
      panels: Array<{ targets?: Array<{ expr: string }> }>;
    };
    const shown = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '1m')));
    const queries = [...alerts.map(({ expr }) => expr), ...shown].map((query) => ({ query, ...namesIn(query) }));
    // Prometheus itself reports whether a process answers.
    const known = (name: string) =>
      name === 'up' || types.has(name) || types.get(name.replace(/_(bucket|count|sum)$/, '')) === 'histogram';
    expect(queries.flatMap(({ metrics }) => metrics).filter((name) => !known(name))).toEqual([]);
    const labelsOf = (metric: string) =>
      samples.filter(({ name }) => name === metric).flatMap(({ labels }) => Object.keys(labels));
    // A metric without values has no labels yet.
    const valued = queries.filter(({ metrics }) => metrics.every((metric) => samples.some(({ name }) => name === metric)));
    const unknown = valued.filter(({ metrics, labels }) => {
      const all = new Set([...metrics.flatMap(labelsOf), 'job', 'instance']);
      return labels.some((label) => !all.has(label));
    });
    expect([unknown, valued.length > 50, alerts.length > 10, shown.length > 30]).toEqual([[], true, true, true]);
    const headings = [...(await readRepository(RUNBOOK)).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
      heading.toLowerCase().replaceAll(' ', '-'),
    );
    for (const { alert, for: duration, labels, annotations } of alerts) {
      expect([duration, labels.severity]).toEqual([
        expect.stringMatching(/^\d+m$/),
        expect.stringMatching(/^(critical|warning)$/),
      ]);
      expect(annotations.summary).not.toBe('');
      expect(headings).toContain(alert.toLowerCase());
    }
  });
});

interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string };
}

const readRepository = (path: string) => readFile(new URL(`../../../../${path}`, import.meta.url), 'utf8');

/** The metrics and labels that a query names; throws for invalid PromQL. */
function namesIn(query: string): { readonly metrics: string[]; readonly labels: string[] } {
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
