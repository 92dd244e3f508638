import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createCredentialCheck } from '../rpc/credentials.ts';
import type { Exposition } from '../telemetry/metrics.ts';
import type { MetricsConfig } from '../telemetry/settings.ts';
import { limitConnections } from './concurrency-limit.ts';
import { probeReadiness, type ReadinessCheck } from './probes.ts';

export type AdminListener = Awaited<ReturnType<typeof startAdminListener>>;

const CONNECTIONS = { total: 100, perNetwork: 20 };
const REQUEST_TIMEOUT_MS = 3_000;
const SILENCE_TIMEOUT_MS = 10_000;
const TIMEOUT_CHECK_INTERVAL_MS = 1_000;

/**
 * Serves `/healthz` and `/readyz` to anyone, and `/metrics` with the token. Without TLS even where
 * services use it, since probes have no certificate.
 */
export async function startAdminListener(
  { host, port, token }: MetricsConfig,
  exposition: Exposition,
  checkReady: ReadinessCheck,
) {
  const hasToken = createCredentialCheck([token]);
  const timeouts = {
    requestTimeout: REQUEST_TIMEOUT_MS,
    headersTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
  };
  const answer = async (req: IncomingMessage, res: ServerResponse) => {
    const path = req.url?.split('?', 1)[0];
    const isProbe = path === '/healthz' || path === '/readyz';
    if (!isProbe && !hasToken(req.headers.authorization)) return send(res, 401, '', { 'www-authenticate': 'Bearer' });
    if (!isProbe && path !== '/metrics') return send(res, 404);
    if (req.method !== 'GET' && req.method !== 'HEAD') return send(res, 405, '', { allow: 'GET, HEAD' });
    if (!isProbe) return send(res, 200, await exposition.render(), { 'content-type': exposition.contentType });
    const { statusCode, status } = path === '/healthz' ? { statusCode: 200, status: 'ok' } : await probeReadiness(checkReady);
    send(res, statusCode, JSON.stringify({ status }), { 'content-type': 'application/json; charset=utf-8' });
  };
  const server = createServer(timeouts, (req, res) => void answer(req, res).catch(() => send(res, 500)));
  limitConnections(server, CONNECTIONS);
  server.setTimeout(SILENCE_TIMEOUT_MS);
  server.on('clientError', (_, socket) => void socket.destroy());
  server.listen({ host, port });
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async stop(): Promise<void> {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Closes the connection, since the rest of the request is not read. Node sends no body to HEAD. */
function send(res: ServerResponse, status: number, body = '', headers = {}): void {
  res.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body), connection: 'close' }).end(body);
}
