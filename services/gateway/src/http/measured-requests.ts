import { Gauge, Histogram, isMeasuring, type Observe } from '@latchkey/kit/metrics/instrument';
import type { FastifyInstance, FastifyRequest } from 'fastify';

/** Bounds in seconds: most answers take a few milliseconds, and those about a database that is away 2.5 to 5 s. Uploads have minutes. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180];

const durations = new Histogram({
  name: 'latchkey_http_request_duration_seconds',
  help: 'Time from the headers of a request to the end of its answer, by method, route and status; 499 where the client went away.',
  labels: ['method', 'route', 'status'],
  buckets: BUCKETS,
});

const connections = new Gauge({ name: 'latchkey_http_connections', help: 'Open connections of clients.' });

const connectionsMax = new Gauge({
  name: 'latchkey_http_connections_max',
  help: 'Connections beyond which new ones are closed at once (CONNECTIONS_MAX).',
});

/** Route of requests that none takes: their paths and methods are clients' own words. */
const UNMATCHED = 'unmatched';
const CLIENT_GONE = 499;

/** Measures requests by their route, where that is asked for. */
export function measureRequests(app: FastifyInstance, open: ReadonlySet<unknown>): void {
  if (!isMeasuring()) return;
  const unwatch = [connections.watch(() => [[open.size]]), connectionsMax.watch(() => [[app.server.maxConnections]])];
  app.addHook('onClose', async () => {
    for (const end of unwatch) end();
  });
  const children = new Map<string, Map<number, Observe | undefined>>();
  const observerOf = (request: FastifyRequest, status: number) => {
    const { url } = request.routeOptions;
    const key = url === undefined ? UNMATCHED : `${request.method} ${url}`;
    const byStatus = children.get(key) ?? new Map<number, Observe | undefined>();
    children.set(key, byStatus);
    if (!byStatus.has(status)) {
      const method = url === undefined ? 'any' : request.method;
      byStatus.set(status, durations.child(method, url ?? UNMATCHED, String(status)));
    }
    return byStatus.get(status);
  };
  app.addHook('onRequest', (request, reply, done) => {
    const { raw } = reply;
    // An answer that is cut off has no other end.
    raw.once('close', () =>
      observerOf(request, raw.writableFinished ? raw.statusCode : CLIENT_GONE)?.(reply.elapsedTime / 1_000),
    );
    done();
  });
}
