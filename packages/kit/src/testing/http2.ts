import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2';
import { connect as connectTcp, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { AUTHORIZATION } from './servers.ts';

/** A silent connection, closed at the end of the test. */
export function openTcp(url: string, localAddress = '127.0.0.1'): Socket {
  const socket = connectTcp({ port: Number(new URL(url).port), host: '127.0.0.1', localAddress });
  socket.on('error', () => undefined).resume();
  onTestFinished(() => void socket.destroy());
  return socket;
}

/** An HTTP/2 session without a library on top. */
export function openSession(url: string, createConnection = () => openTcp(url)): ClientHttp2Session {
  const session = connectHttp2(url, { createConnection });
  session.on('error', () => undefined);
  onTestFinished(() => session.destroy());
  return session;
}

export const DELETE_APPLICATION = '/latchkey.apps.v1.ApplicationService/DeleteApplication';

/** An empty message in an envelope of gRPC. */
export const EMPTY = Buffer.alloc(5);

/** A gRPC call with the credential, and what has come of it so far. */
export function startCall(session: ClientHttp2Session, path = DELETE_APPLICATION, body?: Buffer, headers = {}) {
  const stream = session.request({
    [constants.HTTP2_HEADER_METHOD]: 'POST',
    [constants.HTTP2_HEADER_PATH]: path,
    'content-type': 'application/grpc',
    te: 'trailers',
    authorization: AUTHORIZATION,
    ...headers,
  });
  const seen = { status: undefined as string | undefined, bytes: 0, isClosed: false, rstCode: undefined as number | undefined };
  const onHeaders = (given: Record<string, unknown>) => {
    if (given['grpc-status'] !== undefined) seen.status = String(given['grpc-status']);
  };
  stream.on('response', onHeaders).on('trailers', onHeaders);
  stream.on('error', () => undefined);
  stream.on('close', () => Object.assign(seen, { isClosed: true, rstCode: stream.rstCode }));
  stream.on('data', (chunk: Buffer) => {
    seen.bytes += chunk.byteLength;
  });
  if (body) stream.end(body);
  return { stream, seen };
}
