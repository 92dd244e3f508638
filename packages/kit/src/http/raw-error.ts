import { randomUUID } from 'node:crypto';
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { commonErrors, DomainError } from '../errors/errors.ts';
import type { Logger } from '../log/logger.ts';
import { isReceiving, pendingAnswer } from './connections.ts';
import { isLingering, lingeringClose } from './lingering-close.ts';
import { requestIdOf } from './request.ts';
import { errorEnvelope, STANDARD_HEADERS } from './response.ts';

export const requestTooSlow = (): DomainError =>
  commonErrors.request_malformed().withDetails({ path: 'request', message: 'must arrive within the time limit' });

/** Status and error for each failure of Node's HTTP parser; any other is 400. */
const PARSER_FAILURES: Readonly<Record<string, readonly [status: number, err: DomainError]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, requestTooSlow()],
  HPE_HEADER_OVERFLOW: [
    431,
    commonErrors.request_malformed().withDetails({ path: 'header', message: 'must be at most 16 KiB in all' }),
  ],
};

/** A response that is written to a socket: status of the error's kind and a new id unless set. */
export interface RawAnswer {
  readonly status?: number;
  readonly requestId?: string;
  /** Never from a client. */
  readonly headers?: Readonly<Record<string, string>>;
}

const rejected = new WeakSet<Duplex>();

/**
 * Writes an error envelope to a socket of an HTTP server and ends it: for failures before there is
 * a request, and for rejected upgrades. Responses to earlier requests of {@link trackConnections}
 * go first. Only the first call for a socket counts.
 */
export function endWithEnvelope(socket: Duplex, err: DomainError, answer: RawAnswer = {}): void {
  if (rejected.has(socket)) return;
  rejected.add(socket);
  // Node lets go of an upgraded socket: an error without a listener would end the process.
  socket.on('error', () => socket.destroy());
  const pending = pendingAnswer(socket);
  if (pending) pending.once('close', () => writeEnvelope(socket, err, answer));
  else writeEnvelope(socket, err, answer);
}

function writeEnvelope(socket: Duplex, err: DomainError, answer: RawAnswer): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const status = answer.status ?? err.httpStatus;
  const { headers, body } = createAnswer(err, answer);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const bytes = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`, ...lines, '', body].join('\r\n');
  // A handler that reads the body of a broken request sees the end of the connection.
  if (isReceiving(socket)) socket.end(bytes, () => socket.destroy());
  else lingeringClose(socket as Socket, bytes);
}

/** JSON, or the envelope of an error, as the last answer of a connection. */
function createAnswer(content: object, { requestId = randomUUID(), headers: others }: RawAnswer) {
  const body = JSON.stringify(content instanceof DomainError ? errorEnvelope(content, requestId) : content);
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'x-request-id': requestId,
    ...STANDARD_HEADERS,
    ...others,
    connection: 'close',
  };
  return { headers, body };
}

/** Answers a request with JSON, or with the envelope of an error, and ends its connection. */
export function answerLast(
  req: IncomingMessage,
  res: ServerResponse,
  content: object,
  status: number,
  others: Readonly<Record<string, string>> = {},
): void {
  const { headers, body } = createAnswer(content, { requestId: requestIdOf(req), headers: others });
  res.writeHead(status, headers).end(body);
}

/** Answers a failure of the HTTP parser, as a listener for `clientError`. */
export function onClientError(
  err: NodeJS.ErrnoException,
  socket: Duplex,
  logger: Logger,
  headers: RawAnswer['headers'] = {},
): void {
  logger.debug({ code: err.code }, 'request could not be parsed');
  if (isLingering(socket)) return;
  if (err.code === 'ECONNRESET' || socket.destroyed) {
    socket.destroy();
    return;
  }
  const [status, failure] = PARSER_FAILURES[err.code ?? ''] ?? [400, commonErrors.request_malformed()];
  endWithEnvelope(socket, failure, { status, headers });
}

/** Answers unknown expectations and CONNECT with the envelope, which Node would answer or drop. */
export function coverNodeDefaults(server: Server, others: RawAnswer['headers'] = {}): void {
  server.on('checkExpectation', (req: IncomingMessage, res: ServerResponse) => {
    const err = commonErrors.request_malformed().withDetails({ path: 'header.expect', message: 'must be 100-continue' });
    answerLast(req, res, err, 417, others);
  });
  server.on('connect', (req: IncomingMessage, socket: Duplex) => {
    const answer = { status: 405, requestId: requestIdOf(req), headers: { ...others, allow: 'GET' } };
    const err = commonErrors.request_malformed().withDetails({ path: 'request', message: 'must not use the method CONNECT' });
    endWithEnvelope(socket, err, answer);
  });
}
