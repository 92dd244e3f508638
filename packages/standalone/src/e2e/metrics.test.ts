import { createEmptyTestDatabase, type TestDatabase } from '@latchkey/testkit/database';
import { eventually } from '@latchkey/testkit/eventually';
import { testRedis } from '@latchkey/testkit/redis';
import { startTcpProxy, type TcpProxy } from '@latchkey/testkit/tcp-proxy';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { plain, uploadAvatar } from '../testing/avatars.ts';
import { createApplication, createKey, type Key, type Owner, signUp, unique } from '../testing/caller.ts';
import { upload } from '../testing/files.ts';
import { SERVICE_CREDENTIAL } from '../testing/instance.ts';
import { LiveClient, readSocketKey, setSetting } from '../testing/live.ts';
import { namesIn, readAlerts, readAnchors, readDashboardQueries } from '../testing/observability-files.ts';
import { type OwnInstance, startOwnInstance } from '../testing/own-instance.ts';
import { type Scrape, scrape } from '../testing/scrape.ts';

const METRICS_TOKEN = 'a-token-of-the-tests-for-metrics-alone';
/** Shorter than the time-out of the scrapes in deploy/prometheus. */
const SCRAPE_MS_MAX = 4_000;
const RUNBOOK = 'docs/operations.md';

let database: TestDatabase;
let postgres: TcpProxy;
let redis: TcpProxy;
let instance: OwnInstance;
let owner: Owner;
let key: Key;
let applicationId: string;
beforeAll(async () => {
  database = await createEmptyTestDatabase();
  postgres = await startTcpProxy(database.url);
  redis = await startTcpProxy((await testRedis()).url);
  instance = await startOwnInstance({
    databaseUrl: postgres.url,
    redisUrl: redis.url,
    env: { METRICS_PORT: '0', METRICS_TOKEN, AUTH_ATTEMPTS_PER_MINUTE: '5' },
  });
  owner = await signUp(instance.api);
  key = await createKey(owner);
  applicationId = await createApplication(key.api);
});
afterAll(async () => {
  await instance.stop();
  await Promise.all([postgres.close(), redis.close()]);
  await database.drop();
});

const scrapeAll = () => scrape(instance.metricsUrls, METRICS_TOKEN);

/** Scrapes until something can be seen. */
async function seen(check: (scraped: Scrape) => void): Promise<Scrape> {
  let scraped = await scrapeAll();
  await eventually(
    async () => {
      scraped = await scrapeAll();
      check(scraped);
    },
    { timeoutMs: 15_000, intervalMs: 200 },
  );
  return scraped;
}

describe('metrics', () => {
  it.each([undefined, '', 'Bearer', `Bearer ${METRICS_TOKEN}x`, `Basic ${METRICS_TOKEN}`, `Bearer ${SERVICE_CREDENTIAL}`])(
    'are for nobody with the authorization %o',
    async (authorization) => {
      for (const url of instance.metricsUrls) {
        const answer = await fetch(url, { headers: authorization === undefined ? {} : { authorization } });
        expect([answer.status, answer.headers.get('www-authenticate'), await answer.text()]).toEqual([401, 'Bearer', '']);
      }
    },
  );

  it('are on ports of their own, whose token opens nothing else', async () => {
    expect(instance.metricsUrls.length).toBe(instance.shape === 'deployed' ? 5 : 1);
    for (const base of [instance.baseUrl, instance.filesUrl].filter((url) => url !== undefined)) {
      expect((await fetch(`${base}/metrics`, { headers: { authorization: `Bearer ${METRICS_TOKEN}` } })).status).toBe(404);
    }
    const token = { authorization: `Bearer ${METRICS_TOKEN}` };
    expect((await instance.api.with(token).get('/api/v1/panel/get-applications')).status).toBe(401);
  });

  it('tell of requests by route and status, and of calls by method and code, under no id, address or word of a client', async () => {
    const path = unique('/nowhere-');
    await fetch(instance.baseUrl + path);
    await owner.session.patch(`/api/v1/panel/api-keys/${applicationId}`, { name: 'Another' });
    for (let i = 0; i < 6; i += 1) {
      await instance.api.post('/api/v1/auth/sign-in', { email: owner.email, password: 'a wrong password' });
    }
    const scraped = await seen(({ sum }) => {
      const requests = 'latchkey_http_request_duration_seconds_count';
      expect(sum(requests, { method: 'any', route: 'unmatched', status: '404' })).toBeGreaterThanOrEqual(1);
      expect(sum(requests, { method: 'PATCH', route: '/api/v1/panel/api-keys/:id', status: '404' })).toBe(1);
      const method = { service: 'latchkey.identity.v1.ApiKeyService', method: 'UpdateApiKey' };
      expect(sum('latchkey_rpc_server_duration_seconds_count', { ...method, code: 'not_found' })).toBe(1);
      expect(sum('latchkey_rpc_server_duration_seconds_count', { code: 'ok' })).toBeGreaterThan(3);
      expect(sum('latchkey_sign_in_failures_total', { reason: 'sign_in_failed' })).toBe(5);
      expect(sum('latchkey_rate_limit_refusals_total', { limit: 'sign-in' })).toBe(1);
    });
    const texts = scraped.samples.flatMap(({ labels }) => Object.values(labels)).join('\n');
    for (const word of [path, owner.email, owner.username, '127.0.0.1', key.text]) expect(texts).not.toContain(word);
    expect(texts).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-/);
  });

  it('tell of uploads, avatars, sockets, events, queues, pools and connections to Redis', async () => {
    const client = new LiveClient(instance.realtimeUrl, await readSocketKey(owner.session, applicationId));
    await client.ready();
    expect(await new LiveClient(instance.realtimeUrl, 'lk_sock_wrong').ended).toBe(401);
    const before = (await scrapeAll()).sum('latchkey_upload_bytes_total') ?? 0;
    expect((await upload(key.api, applicationId, unique(), Buffer.alloc(100_000, 'x'))).status).toBe(200);
    await setSetting(key.api, applicationId, 'version', '2.0');
    await eventually(() => expect(client.events).toHaveLength(1));
    const { sum } = await seen((scraped) => {
      expect(scraped.sum('latchkey_upload_bytes_total')).toBe(before + 100_000);
      expect(scraped.sum('latchkey_queue_job_duration_seconds_count', { queue: 'realtime', outcome: 'done' })).toBe(1);
      expect(scraped.sum('latchkey_event_delivery_lag_seconds_count')).toBe(1);
      // These are read now and then, and may have been when the event was on its way.
      for (const queue of ['realtime', 'files', 'identity', 'avatar'])
        expect(scraped.sum('latchkey_queue_jobs', { queue })).toBe(0);
      expect([scraped.sum('latchkey_outbox_waiting_events'), scraped.sum('latchkey_outbox_oldest_seconds')]).toEqual([0, 0]);
    });
    expect((await uploadAvatar(owner.session, await plain(20, 20).png().toBuffer())).status).toBe(200);
    await seen((scraped) => expect(scraped.sum('latchkey_avatar_decode_duration_seconds_count', { outcome: 'ok' })).toBe(1));
    expect(sum('latchkey_uploads_total', { outcome: 'stored' })).toBe(1);
    expect(sum('latchkey_uploads_running')).toBe(0);
    expect(sum('latchkey_object_store_duration_seconds_count', { operation: 'put', outcome: 'ok' })).toBe(1);
    expect([sum('latchkey_sockets_open'), sum('latchkey_socket_applications'), sum('latchkey_events_sent_total')]).toEqual([
      1, 1, 1,
    ]);
    expect(sum('latchkey_upgrades_refused_total', { reason: 'socket_key_invalid' })).toBe(1);
    for (const schema of ['apps', 'identity', 'files']) {
      expect(sum('latchkey_database_connections', { schema })).toBeGreaterThan(0);
      expect(sum('latchkey_database_connections_max', { schema })).toBe(10);
    }
    expect(sum('latchkey_redis_connections', { state: 'down' })).toBe(0);
    client.ws.terminate();
    await seen((scraped) => expect(scraped.sum('latchkey_sockets_closed_total', { code: '1006' })).toBe(1));
  });

  it('are what the dashboard and the alerts ask for, in PromQL, and every alert has its place in the handbook', async () => {
    const [alerts, panels, { types, samples }] = await Promise.all([readAlerts(), readDashboardQueries(), scrapeAll()]);
    const queries = [...alerts.map(({ expr }) => expr), ...panels];
    const known = (name: string) => types.has(name) || types.get(name.replace(/_(bucket|count|sum)$/, '')) === 'histogram';
    // That a process answers at all, Prometheus says by itself.
    const asked = new Set(queries.flatMap((query) => namesIn(query).metrics));
    expect([...asked].filter((name) => name !== 'up' && !known(name))).toEqual([]);
    const labelsOf = (metric: string) => samples.filter(({ name }) => name === metric).map(({ labels }) => Object.keys(labels));
    // Of what nothing has happened of, there is no label to be seen.
    const seenInAll = queries.filter((query) => namesIn(query).metrics.every((metric) => labelsOf(metric).length > 0));
    const unknown = seenInAll.flatMap((query) => {
      const { metrics, labels } = namesIn(query);
      const shown = new Set([...metrics.flatMap(labelsOf).flat(), 'job', 'instance']);
      return labels.filter((label) => !shown.has(label)).map((label) => `${label} of ${query}`);
    });
    expect(unknown).toEqual([]);
    expect(seenInAll.length).toBeGreaterThan(50);
    expect([alerts.length > 10, panels.length > 30]).toEqual([true, true]);
    const anchors = await readAnchors(RUNBOOK);
    for (const { alert, for: duration, labels, annotations } of alerts) {
      expect(duration).toMatch(/^\d+m$/);
      expect(['critical', 'warning']).toContain(labels.severity);
      expect(annotations.summary).not.toBe('');
      expect(annotations.runbook).toBe(`${RUNBOOK}#${alert.toLowerCase()}`);
      expect(anchors, alert).toContain(alert.toLowerCase());
    }
  });
});

describe.each([
  ['PostgreSQL', () => postgres, 'outbox'],
  ['Redis', () => redis, 'queues of latchkey-apps-relay'],
])('with %s frozen', (_what, proxyOf, probe) => {
  it('metrics are answered all the same, without what can not be read, and with it again after', async () => {
    await seen(({ sum }) => expect(sum('latchkey_probe_up', { probe })).toBe(1));
    proxyOf().freeze();
    try {
      await seen(({ sum }) => expect(sum('latchkey_probe_up', { probe })).toBe(0));
      const startedAt = performance.now();
      const { samples, sum } = await scrapeAll();
      expect(performance.now() - startedAt).toBeLessThan(SCRAPE_MS_MAX);
      expect(samples.length).toBeGreaterThan(100);
      expect(
        sum(probe === 'outbox' ? 'latchkey_outbox_waiting_events' : 'latchkey_queue_jobs', { queue: 'realtime' }),
      ).toBeUndefined();
    } finally {
      await proxyOf().restore();
    }
    await seen(({ sum }) => expect(sum('latchkey_probe_up', { probe })).toBe(1));
  });
});
