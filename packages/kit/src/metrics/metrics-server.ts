import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { limitConnections } from '../http/connection-limits.ts';
import { createCredentialCheck } from '../rpc/credentials.ts';
import type { Exposition } from './instrument.ts';
import type { MetricsConfig } from './settings.ts';

/** A server of metrics that listens. */
export interface MetricsServer {
  readonly port: number;
  stop(): Promise<void>;
}

const PATH = '/metrics';
/** Scrapers are few, and none needs more than one connection. */
const CONNECTIONS = { total: 32, perNetwork: 8 };
/** Longest time for a request to come, and for an answer to be read, in milliseconds. */
const REQUEST_TIMEOUT_MS = 3_000;
const SILENCE_TIMEOUT_MS = 10_000;
const TIMEOUT_CHECK_INTERVAL_MS = 1_000;

/**
 * Serves `GET /metrics` to whoever has the token, on a port of its own: what is measured says how much is going on, and is not for clients. The token is
 * compared in constant time.
 */
export async function startMetricsServer(config: MetricsConfig, exposition: Exposition): Promise<MetricsServer> {
  const isAllowed = createCredentialCheck([config.token]);
  const server = createServer(
    {
      requestTimeout: REQUEST_TIMEOUT_MS,
      headersTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
    },
    (req, res) => answer(req, res, isAllowed(req.headers.authorization), exposition),
  );
  limitConnections(server, CONNECTIONS);
  server.setTimeout(SILENCE_TIMEOUT_MS);
  server.on('clientError', (_, socket) => void socket.destroy());
  server.listen({ host: config.host, port: config.port });
  await once(server, 'listening');
  return { port: (server.address() as AddressInfo).port, stop: () => close(server) };
}

function answer(req: IncomingMessage, res: ServerResponse, isAllowed: boolean, exposition: Exposition): void {
  const isRead = req.method === 'GET' || req.method === 'HEAD';
  if (!isAllowed) refuse(res, 401, { 'www-authenticate': 'Bearer' });
  else if (req.url?.split('?', 1)[0] !== PATH) refuse(res, 404);
  else if (!isRead) refuse(res, 405, { allow: 'GET, HEAD' });
  else {
    exposition.render().then(
      (text) => {
        res.writeHead(200, { 'content-type': exposition.contentType, 'content-length': Buffer.byteLength(text) });
        res.end(req.method === 'HEAD' ? undefined : text);
      },
      () => refuse(res, 500),
    );
  }
}

function refuse(res: ServerResponse, status: number, headers = {}): void {
  // What may be left of the request is not read.
  res.writeHead(status, { ...headers, 'content-length': 0, connection: 'close' }).end();
}

async function close(server: Server): Promise<void> {
  server.close();
  server.closeAllConnections();
  await Promise.resolve();
}
