// Prints the Grafana dashboard, for "Import" in Grafana:
//
//   node deploy/grafana/dashboard.mjs > latchkey.json
//
// Plain JavaScript without dependencies, as operators run it on whatever Node.js is there.

const datasource = { type: 'prometheus', uid: `\${datasource}` };
const job = 'job=~"$job"';

/** @type {(name: string, filter?: string) => string} a metric of the chosen processes */
const metric = (name, filter) => `latchkey_${name}{${[job, 'instance=~"$instance"', filter].filter(Boolean).join()}}`;
/** @type {typeof metric} */
const rate = (...of) => `rate(${metric(...of)}[$__rate_interval])`;
/** @type {typeof metric} */
const increase = (...of) => `increase(${metric(...of)}[$__rate_interval])`;

/** @type {(name: string) => (labels: string, query: string) => string} with a series for each value of the labels */
const aggregate = (name) => (labels, query) => (labels === '' ? `${name}(${query})` : `${name} by (${labels}) (${query})`);
const [sum, max, count] = ['sum', 'max', 'count'].map(aggregate);

/** @type {(share: number, labels: string, name: string, filter?: string) => string} a quantile of a histogram */
const quantile = (share, labels, name, filter) =>
  `histogram_quantile(${share}, ${sum(['le', labels].filter(Boolean).join(', '), rate(`${name}_bucket`, filter))})`;

/** @type {(name: string, filter?: string) => Record<string, string>} quantiles of a histogram */
const quantiles = (name, filter) =>
  Object.fromEntries([50, 95, 99].map((percent) => [`p${percent}`, quantile(percent / 100, '', name, filter)]));

/** @type {(title: string, unit: string, queries: Record<string, string>) => object} a chart of queries by legend */
const panel = (title, unit, queries) => ({
  type: 'timeseries',
  title,
  datasource,
  fieldConfig: { defaults: { unit, min: 0, custom: { fillOpacity: 10, showPoints: 'never' } }, overrides: [] },
  options: {
    legend: { displayMode: 'list', placement: 'bottom', showLegend: true },
    tooltip: { mode: 'multi', sort: 'desc' },
  },
  targets: Object.entries(queries).map(([legendFormat, expr], i) => ({ refId: 'ABC'[i], datasource, expr, legendFormat })),
});

const requests = sum('', rate('http_request_duration_seconds_count'));
const failed = sum('', rate('http_request_duration_seconds_count', 'status=~"5.."'));
const transfers = 'route!~".*/upload-.*|/downloads/.*"';

const rows = {
  'Requests (gateway)': [
    panel('Requests by status', 'reqps', { '{{status}}': sum('status', rate('http_request_duration_seconds_count')) }),
    panel('Share of failures (5xx)', 'percentunit', { failures: `${failed} / ${requests}` }),
    panel('Time, without uploads and downloads', 's', quantiles('http_request_duration_seconds', transfers)),
    panel('Requests by route', 'reqps', {
      '{{method}} {{route}}': sum('method, route', rate('http_request_duration_seconds_count')),
    }),
    panel('Time by route (p95)', 's', { '{{route}}': quantile(0.95, 'route', 'http_request_duration_seconds') }),
    panel('Open connections', 'short', {
      '{{instance}}': sum('instance', metric('http_connections')),
      most: max('', metric('http_connections_max')),
    }),
    panel('Rejected by limits', 'reqps', { '{{limit}}': sum('limit', rate('rate_limit_rejections_total')) }),
    panel('Limits counted in each process, as Redis is away', 'ops', {
      '{{instance}}': sum('instance', rate('rate_limit_fallbacks_total')),
    }),
    panel('Failed sign-ins', 'reqps', { '{{reason}}': sum('reason', rate('sign_in_failures_total')) }),
  ],
  'Calls between services': [
    panel('Calls by service', 'reqps', { '{{service}}': sum('service', rate('rpc_server_duration_seconds_count')) }),
    panel('Failed calls', 'reqps', {
      '{{service}}/{{method}} {{code}}': sum('service, method, code', rate('rpc_server_duration_seconds_count', 'code!="ok"')),
    }),
    panel('Time by method (p95)', 's', { '{{method}}': quantile(0.95, 'method', 'rpc_server_duration_seconds') }),
    panel('Time as callers see it (p95)', 's', { '{{service}}': quantile(0.95, 'service', 'rpc_client_duration_seconds') }),
    panel('Failed calls as callers see them', 'reqps', {
      '{{service}} {{code}}': sum('service, code', rate('rpc_client_duration_seconds_count', 'code!="ok"')),
    }),
    panel('Calls rejected: no service credential, or too many', 'reqps', {
      '{{instance}} no credential': sum('instance', rate('rpc_credential_rejections_total')),
      '{{instance}} too many': sum('instance', rate('rpc_overload_rejections_total')),
    }),
  ],
  'Events and queues': [
    panel('Events not yet delivered', 'short', { waiting: max('', metric('outbox_waiting_events')) }),
    panel('Age of the oldest waiting event', 's', { oldest: max('', metric('outbox_oldest_seconds')) }),
    panel('Jobs waiting', 'short', { '{{queue}}': max('queue', metric('queue_jobs', 'state="waiting"')) }),
    panel('Jobs active, delayed, failed', 'short', {
      '{{queue}} {{state}}': max('queue, state', metric('queue_jobs', 'state!="waiting"')),
    }),
    panel('Age of the oldest waiting job', 's', { '{{queue}}': max('queue', metric('queue_oldest_waiting_seconds')) }),
    panel('Time of jobs (p95), and given up', 's', {
      '{{queue}}': quantile(0.95, 'queue', 'queue_job_duration_seconds'),
      '{{queue}} given up': sum('queue', increase('queue_jobs_given_up_total')),
    }),
  ],
  'Live connections (realtime)': [
    panel('Open sockets', 'short', {
      '{{instance}}': sum('instance', metric('sockets_open')),
      most: max('', metric('sockets_max')),
    }),
    panel('Applications with sockets', 'short', { '{{instance}}': sum('instance', metric('socket_applications')) }),
    panel('Rejected upgrades', 'reqps', { '{{reason}}': sum('reason', rate('upgrades_rejected_total')) }),
    panel('Closed sockets', 'reqps', { '{{code}}': sum('code', rate('sockets_closed_total')) }),
    panel('Events sent', 'ops', { '{{instance}}': sum('instance', rate('events_sent_total')) }),
    panel('Delivery lag', 's', quantiles('event_delivery_lag_seconds')),
  ],
  'Files and avatars': [
    panel('Uploads and downloads under way', 'short', {
      uploads: sum('', metric('uploads_running')),
      downloads: sum('', metric('downloads_open')),
      'most downloads of a process': max('', metric('downloads_max')),
    }),
    panel('Uploads by outcome', 'ops', { '{{outcome}}': sum('outcome', rate('uploads_total')) }),
    panel('Bytes', 'Bps', { in: sum('', rate('upload_bytes_total')), out: sum('', rate('download_bytes_total')) }),
    panel('Object store: time (p95)', 's', { '{{operation}}': quantile(0.95, 'operation', 'object_store_duration_seconds') }),
    panel('Object store: failures', 'ops', {
      '{{operation}}': sum('operation', rate('object_store_duration_seconds_count', 'outcome="failed"')),
    }),
    panel('Bodies at the files service (p95)', 's', { '{{route}}': quantile(0.95, 'route', 'body_duration_seconds') }),
    panel("Sweeper's finds", 'ops', {
      '{{kind}} removed': sum('kind', rate('sweep_removed_total')),
      '{{kind}} left': sum('kind', rate('sweep_failures_total')),
    }),
    panel('Runs of sweepers', 'ops', { '{{outcome}}': sum('outcome', rate('sweep_runs_total')) }),
    panel('Sweepers: overdue', 's', { '{{sweep}}': max('sweep', metric('sweep_lag_seconds')) }),
    panel('Decoding of avatars (p95)', 's', { '{{outcome}}': quantile(0.95, 'outcome', 'avatar_decode_duration_seconds') }),
  ],
  'PostgreSQL, Redis and processes': [
    panel('Connections to PostgreSQL', 'short', {
      '{{schema}} {{state}}': sum('schema, state', metric('database_connections')),
      '{{schema}} most': sum('schema', metric('database_connections_max')),
    }),
    panel('Queries waiting for a connection', 'short', {
      '{{schema}} {{instance}}': sum('schema, instance', metric('database_waiting')),
    }),
    panel('Connections to Redis that are down', 'short', {
      '{{connection}}': sum('connection', metric('redis_connections', 'state="down"')),
    }),
    panel('Probes that fail', 'short', { '{{probe}} {{instance}}': `${metric('probe_up')} == 0` }),
    panel('Event loop lag (p99)', 's', { '{{instance}}': metric('nodejs_eventloop_lag_p99_seconds') }),
    panel('CPU', 'percentunit', { '{{instance}}': rate('process_cpu_seconds_total') }),
    panel('Memory', 'bytes', {
      '{{instance}} resident': metric('process_resident_memory_bytes'),
      '{{instance}} heap': metric('nodejs_heap_size_used_bytes'),
    }),
    panel('File descriptors', 'short', { '{{instance}}': metric('process_open_fds') }),
    panel('Processes', 'short', { '{{service}} on {{node}}': count('service, node', metric('process_info')) }),
  ],
};

/** @type {(name: string, label: string, query: string) => object} a choice among the values of a label */
const variable = (name, label, query) => ({
  ...{ name, label, type: 'query', datasource, query: { query, refId: name }, definition: query },
  ...{ includeAll: true, multi: true, allValue: '.*', current: { text: 'All', value: '$__all' }, refresh: 2, sort: 1 },
});

const COLUMNS = 3;
const WIDTH = 24;
const HEIGHT = 8;

/** Panels in rows of three below the title of their row, numbered in this order. */
function layOut() {
  let y = 0;
  const placed = Object.entries(rows).flatMap(([title, panels]) => {
    const row = { type: 'row', title, collapsed: false, gridPos: { h: 1, w: WIDTH, x: 0, y }, panels: [] };
    const below = panels.map((each, i) => {
      const w = WIDTH / COLUMNS;
      return { ...each, gridPos: { h: HEIGHT, w, x: (i % COLUMNS) * w, y: y + 1 + Math.floor(i / COLUMNS) * HEIGHT } };
    });
    y += 1 + Math.ceil(panels.length / COLUMNS) * HEIGHT;
    return [row, ...below];
  });
  return placed.map((each, i) => ({ id: i + 1, ...each }));
}

const dashboard = {
  title: 'Latchkey',
  uid: 'latchkey',
  tags: ['latchkey'],
  ...{ schemaVersion: 39, version: 1, editable: true, graphTooltip: 1, timezone: 'browser', annotations: { list: [] } },
  ...{ refresh: '30s', time: { from: 'now-3h', to: 'now' } },
  templating: {
    list: [
      { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus', current: {}, hide: 0 },
      variable('job', 'Job', 'label_values(latchkey_process_info, job)'),
      variable('instance', 'Instance', `label_values(latchkey_process_info{${job}}, instance)`),
    ],
  },
  panels: layOut(),
};
process.stdout.write(`${JSON.stringify(dashboard, null, 2)}\n`);
