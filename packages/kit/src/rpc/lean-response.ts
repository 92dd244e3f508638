import type { ServerResponse } from 'node:http';
import { type DescMessage, type Message, toBinary } from '@bufbuild/protobuf';
import type { ConnectError } from '@connectrpc/connect';
import { codeToHttpStatus, errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import { tooLarge } from './lean-request.ts';
import { MESSAGE_BYTES_MAX } from './route.ts';
import type { UnaryContext } from './unary-context.ts';

/** Protocol headers, which a handler or the metadata of an error can't change. */
const RESERVED = new Set([
  'content-type',
  'content-length',
  'content-encoding',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'date',
]);

/** @throws ConnectError `resource_exhausted` where the answer is too large, or Error where it is no valid message */
export function sendMessage(res: ServerResponse, schema: DescMessage, message: Message, context?: UnaryContext): void {
  const body = toBinary(schema, message);
  if (body.byteLength > MESSAGE_BYTES_MAX) throw tooLarge('answer');
  send(res, 200, 'application/proto', body, context);
}

/** Answers with an error, unless the caller is gone. */
export function sendError(res: ServerResponse, error: ConnectError, context?: UnaryContext): void {
  if (res.headersSent || res.destroyed) return;
  const body = errorToJsonBytes(error, undefined);
  // The metadata of an error that came over the wire belongs to that call.
  const metadata = error.isWireError ? undefined : error.metadata;
  send(res, codeToHttpStatus(error.code), 'application/json', body, context, metadata);
}

function send(
  res: ServerResponse,
  status: number,
  contentType: string,
  body: Uint8Array,
  context: UnaryContext | undefined,
  metadata?: Headers,
): void {
  const headers = ['content-type', contentType, 'content-length', String(body.byteLength)];
  const append = (value: string, name: string) => void (RESERVED.has(name) || headers.push(name, value));
  context?.writtenHeader?.forEach(append);
  metadata?.forEach(append);
  context?.writtenTrailer?.forEach((value, name) => void headers.push(`trailer-${name}`, value));
  res.writeHead(status, headers);
  res.end(body);
}
