import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { REALTIME_PATH } from '@latchkey/contract/cloud-event';
import { commonErrors, type DomainError } from '@latchkey/kit/errors/errors';
import { type ConnectionLimits, limitConnections } from '@latchkey/kit/http/concurrency-limit';
import { LingeringResponse } from '@latchkey/kit/http/lingering-close';
import { answerLast, coverNodeDefaults, onClientError } from '@latchkey/kit/http/raw-error';
import { findHeadProblem } from '@latchkey/kit/http/request';
import type { Logger } from '@latchkey/kit/log/logger';
import { WebSocketServer } from 'ws';
import { asyncApiDocument } from './asyncapi.ts';
import { errors } from './errors.ts';
import { CLOUDEVENTS_PROTOCOL, isUpgrade, pathOf } from './upgrade/upgrade-request.ts';

const ASYNCAPI_PATH = '/asyncapi.json';
const UPGRADE_REQUIRED = 426;

/** Longest time for a client to send its request, and the interval of checks, in milliseconds. */
const REQUEST_TIMEOUT_MS = 5_000;
const TIMEOUT_CHECK_INTERVAL_MS = 1_000;

export const MESSAGE_BYTES_MAX = 4_096;
const FRAGMENTS_MAX = 100;
/** Time for a client to answer a close frame, in milliseconds. */
const CLOSE_TIMEOUT_MS = 5_000;

/** The WebSocket side of the endpoint, without compression, which takes five times the CPU. */
export function createWebSocketServer(): WebSocketServer {
  const options = { maxPayload: MESSAGE_BYTES_MAX, maxFragments: FRAGMENTS_MAX, closeTimeout: CLOSE_TIMEOUT_MS };
  return new WebSocketServer({
    ...options,
    noServer: true,
    // One frame per turn of the event loop: a chunk may hold ten thousand.
    allowSynchronousEvents: false,
    clientTracking: false,
    autoPong: false,
    perMessageDeflate: false,
    // Other offered sub-protocols may hold a key, which must not be echoed.
    handleProtocols: (offered) => (offered.has(CLOUDEVENTS_PROTOCOL) ? CLOUDEVENTS_PROTOCOL : false),
  });
}

export function createEndpoint(
  onUpgrade: (req: IncomingMessage, socket: Socket, head: Buffer) => void,
  limits: ConnectionLimits,
  logger: Logger,
): Server {
  const server = createServer(
    {
      ServerResponse: LingeringResponse,
      headersTimeout: REQUEST_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
      // Node's own response would not be the error envelope.
      requireHostHeader: false,
      shouldUpgradeCallback: isUpgrade,
    },
    respond,
  );
  limitConnections(server, limits);
  server.on('upgrade', onUpgrade);
  server.on('clientError', (err, socket) => onClientError(err, socket, logger));
  coverNodeDefaults(server);
  return server;
}

/** The document with the server that the client asked, as its headers name it. */
export function asyncApiFor({ headers }: Pick<IncomingMessage, 'headers'>): object {
  const protocol = headers['x-forwarded-proto'] === 'https' ? 'wss' : 'ws';
  const url = `${protocol}://${headers.host}`;
  const host = URL.canParse(url) ? new URL(url).host : 'localhost';
  const { realtime } = asyncApiDocument.servers;
  return { ...asyncApiDocument, servers: { realtime: { ...realtime, host, protocol } } };
}

/** Responds to requests that ask for no upgrade. */
function respond(req: IncomingMessage, res: ServerResponse): void {
  const path = pathOf(req);
  const isRead = req.method === 'GET' || req.method === 'HEAD';
  const problem = findHeadProblem(req);
  const reject = (err: DomainError, headers = {}, status = err.httpStatus) => answerLast(req, res, err, status, headers);
  if (problem) reject(commonErrors.request_malformed().withDetails(problem));
  else if (path !== REALTIME_PATH && path !== ASYNCAPI_PATH) reject(errors.route_not_found());
  else if (!isRead) reject(errors.method_not_allowed(), { allow: 'GET' });
  else if (path === ASYNCAPI_PATH) answerLast(req, res, asyncApiFor(req), 200);
  else reject(errors.upgrade_required(), { upgrade: 'websocket' }, UPGRADE_REQUIRED);
}
