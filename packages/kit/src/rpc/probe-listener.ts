import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { limitConnections } from '../http/connection-limits.ts';
import type { ReadinessCheck } from './health.ts';

/** Probes are few, small and soon over. */
const CONNECTIONS = { total: 100, perNetwork: 20 };
const REQUEST_MS_MAX = 3_000;
const SILENCE_MS_MAX = 10_000;
const TIMEOUT_CHECK_INTERVAL_MS = 1_000;

/** A server of probes that listens. */
export interface ProbeListener {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Answers `/healthz` and `/readyz`, and nothing else, in clear on a port of its own: those who ask, such as Kubernetes, have no certificate to show where
 * there is TLS between services.
 */
export async function listenForProbes(checkReady: ReadinessCheck, host: string, port: number): Promise<ProbeListener> {
  const timeouts = {
    requestTimeout: REQUEST_MS_MAX,
    headersTimeout: REQUEST_MS_MAX,
    connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
  };
  const server = createServer(timeouts, ({ method, url }, res) => {
    if (method !== 'GET' && method !== 'HEAD') send(res, 405, 'method not allowed');
    else if (url === '/healthz') send(res, 200, 'ok');
    else if (url === '/readyz') {
      checkReady().then(
        () => send(res, 200, 'ready'),
        () => send(res, 503, 'not ready'),
      );
    } else send(res, 404, 'not found');
  });
  limitConnections(server, CONNECTIONS);
  server.timeout = SILENCE_MS_MAX;
  server.listen({ host, port });
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function send(res: ServerResponse, status: number, text: string): void {
  res
    .writeHead(status, { 'content-type': 'application/json; charset=utf-8', connection: 'close' })
    .end(JSON.stringify({ status: text }));
}
