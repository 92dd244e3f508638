import { createLineLog, type Logger } from '@latchkey/kit/log/logger';
import { TRACEPARENT_HEADER } from '@latchkey/kit/rpc/route';
import { Gauge, Histogram, isMeasuring, type Observe } from '@latchkey/kit/telemetry/metrics';
import { activeTracer, failSpan } from '@latchkey/kit/telemetry/tracing';
import type { FastifyInstance, FastifyRequest } from 'fastify';

/** In seconds: most responses take milliseconds, uploads minutes, failing calls 2.5 to 5 s. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180];

const durations = new Histogram({
  name: 'latchkey_http_request_duration_seconds',
  help: 'Time from the headers of a request to the end of its response, by method, route and status; 499 where the client went away.',
  labels: ['method', 'route', 'status'],
  buckets: BUCKETS,
});

const connections = new Gauge({ name: 'latchkey_http_connections', help: 'Open connections of clients.' });

const connectionsMax = new Gauge({
  name: 'latchkey_http_connections_max',
  help: 'Connections beyond which new ones are closed immediately.',
});

/** Route of requests that none takes: clients choose their paths and methods. */
const UNMATCHED = 'unmatched';
const CLIENT_GONE = 499;

export function logRequests(app: FastifyInstance, logger: Logger): void {
  const logRequest = createLineLog(logger, 'info', 'request');
  app.addHook('onResponse', (request, reply, done) => {
    const { id: requestId, method, routeOptions } = request;
    const ms = Math.round(reply.elapsedTime * 1000) / 1000;
    logRequest({ requestId, method, route: routeOptions.url, status: reply.statusCode, ms });
    done();
  });
}

export function observeRequests(app: FastifyInstance, open: ReadonlySet<unknown>): void {
  if (isMeasuring()) measureRequests(app, open);
  traceRequests(app);
}

function measureRequests(app: FastifyInstance, open: ReadonlySet<unknown>): void {
  const unwatch = [connections.watch(() => [[open.size]]), connectionsMax.watch(() => [[app.server.maxConnections]])];
  app.addHook('onClose', async () => {
    for (const end of unwatch) end();
  });
  const observers = new Map<string, Observe | undefined>();
  const observerOf = ({ method, routeOptions: { url } }: FastifyRequest, status: number) => {
    const labels = url === undefined ? (['any', UNMATCHED] as const) : ([method, url] as const);
    const key = `${status} ${labels.join(' ')}`;
    if (!observers.has(key)) observers.set(key, durations.child(...labels, String(status)));
    return observers.get(key);
  };
  app.addHook('onRequest', (request, reply, done) => {
    // A response that is cut off has no other end.
    reply.raw.once('close', () => observerOf(request, statusOf(reply.raw))?.(reply.elapsedTime / 1_000));
    done();
  });
}

/** Starts a trace with each request. A client's own is linked, and does not decide on sampling. */
function traceRequests(app: FastifyInstance): void {
  const tracer = activeTracer();
  if (!tracer) return;
  app.addHook('onRequest', (request, reply, done) => {
    const { method, id, headers } = request;
    const { url: route } = request.routeOptions;
    const traceparent = headers[TRACEPARENT_HEADER];
    const span = tracer.start({
      name: route === undefined ? method : `${method} ${route}`,
      kind: 'server',
      attributes: { 'http.request.method': method, ...(route && { 'http.route': route }), 'latchkey.request_id': id },
      link: typeof traceparent === 'string' ? traceparent : undefined,
    });
    reply.raw.once('close', () => {
      const status = statusOf(reply.raw);
      span.setAttribute('http.response.status_code', status);
      if (status >= 500) failSpan(span, String(status));
      span.end();
    });
    tracer.within(span, done);
  });
}

function statusOf({ writableFinished, statusCode }: { readonly writableFinished: boolean; readonly statusCode: number }): number {
  return writableFinished ? statusCode : CLIENT_GONE;
}
