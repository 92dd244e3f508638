import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Logger } from '@latchkey/kit/logger';
import { errors } from '../errors.ts';
import { errorEnvelope } from './envelope.ts';

/** Status for each failure of Node's HTTP parser; any other is 400. */
const PARSER_STATUS: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
};

/**
 * Writes an error envelope straight to a socket that has no request and ends it: for what fails before Fastify sees it
 * (promises R11).
 */
export function endWithEnvelope(socket: Duplex, status: number, extraHeaders = ''): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const requestId = randomUUID();
  const body = JSON.stringify(errorEnvelope(errors.request_malformed(), requestId));
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n${extraHeaders}\r\n${body}`, () => socket.destroy());
}

/** Answers a failure of the HTTP parser. A connection that was reset has nobody to answer. */
export function onClientError(err: NodeJS.ErrnoException, socket: Duplex, logger: Logger): void {
  logger.debug({ code: err.code }, 'request could not be parsed');
  if (err.code === 'ECONNRESET' || socket.destroyed) {
    socket.destroy();
    return;
  }
  endWithEnvelope(socket, PARSER_STATUS[err.code ?? ''] ?? 400);
}

/** Gives the envelope to what Node would answer, or drop, by itself: foreign expectations, CONNECT and upgrades. */
export function coverNodeDefaults(server: Server): void {
  server.on('checkExpectation', (req: IncomingMessage) => endWithEnvelope(req.socket, 417));
  server.on('connect', (_req, socket: Duplex) => endWithEnvelope(socket, 405, 'allow: GET\r\n'));
}
