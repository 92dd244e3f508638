import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { isLingering, lingeringClose } from '@latchkey/kit/http/lingering-close';
import type { Logger } from '@latchkey/kit/logger';
import { errors } from '../errors.ts';
import { isReceiving, pendingAnswer } from './connections.ts';
import { errorEnvelope } from './envelope.ts';
import { requestIdOf } from './request-id.ts';
import { STANDARD_HEADERS } from './standard-headers.ts';

/** Status for each failure of Node's HTTP parser; any other is 400. */
const PARSER_STATUS: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_HEADER_OVERFLOW: 431,
};

/** Connections that have had, or are about to get, their last answer. */
const refused = new WeakSet<Duplex>();

/**
 * Writes an error envelope straight to a socket that has no request and ends it: for what fails before Fastify sees it
 * (promises R11). Answers to requests before it go first, or the client would take this one for theirs.
 */
export function endWithEnvelope(socket: Duplex, status: number, extraHeaders = ''): void {
  // A parser that has failed fails again with each further piece.
  if (refused.has(socket)) return;
  refused.add(socket);
  const pending = pendingAnswer(socket);
  if (pending) pending.once('close', () => writeEnvelope(socket, status, extraHeaders));
  else writeEnvelope(socket, status, extraHeaders);
}

function writeEnvelope(socket: Duplex, status: number, extraHeaders: string): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const { headers, body } = createEnvelope(randomUUID());
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const head = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`, ...lines].join('\r\n');
  const answer = `${head}\r\n${extraHeaders}\r\n${body}`;
  // Whoever reads a body that goes no further hears of it when the connection is gone.
  if (isReceiving(socket)) socket.end(answer, () => socket.destroy());
  else lingeringClose(socket as Socket, answer);
}

function createEnvelope(requestId: string) {
  const body = JSON.stringify(errorEnvelope(errors.request_malformed(), requestId));
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'x-request-id': requestId,
    ...STANDARD_HEADERS,
    connection: 'close',
  };
  return { headers, body };
}

/** Answers a failure of the HTTP parser. A connection that was reset has nobody to answer. */
export function onClientError(err: NodeJS.ErrnoException, socket: Duplex, logger: Logger): void {
  logger.debug({ code: err.code }, 'request could not be parsed');
  if (isLingering(socket)) return;
  if (err.code === 'ECONNRESET' || socket.destroyed) {
    socket.destroy();
    return;
  }
  endWithEnvelope(socket, PARSER_STATUS[err.code ?? ''] ?? 400);
}

/** Gives the envelope to what Node would answer, or drop, by itself: foreign expectations and CONNECT. */
export function coverNodeDefaults(server: Server): void {
  server.on('checkExpectation', (req: IncomingMessage, res: ServerResponse) => {
    const { headers, body } = createEnvelope(requestIdOf(req));
    res.writeHead(417, headers).end(body);
  });
  server.on('connect', (_req, socket: Duplex) => {
    // Node has let go of the socket: an error that nobody listens for would end the process.
    socket.on('error', () => socket.destroy());
    endWithEnvelope(socket, 405, 'allow: GET\r\n');
  });
}
