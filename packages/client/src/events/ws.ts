import { Connection } from './connection.ts';
import type { ListenOptions, WebSocketClass } from './events.ts';

/** The part of the class of the package `ws` that is used here. */
interface WsSocket {
  on(event: 'open' | 'ping', listener: () => void): void;
  on(event: 'message', listener: (data: unknown) => void): void;
  on(event: 'close', listener: (code: number, reason: unknown) => void): void;
  on(event: 'error', listener: (err: Error & { readonly code?: string }) => void): void;
  on(event: 'unexpected-response', listener: (request: unknown, response: HandshakeResponse) => void): void;
  close(code: number): void;
  terminate(): void;
}

interface HandshakeResponse {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/** The service pings every 30 s: after this time without a ping, the connection is dead. */
const DEAD_AFTER_MS = 75_000;
/** As a proxy may send any value. */
const RETRY_AFTER_SECONDS_MAX = 300;
const BOUNDS = { handshakeTimeout: 10_000, closeTimeout: 1_000, maxPayload: 65_536, perMessageDeflate: false };
/** Reasons of common close codes. */
const REASONS = new Map([
  [1001, 'the service is stopping'],
  [1006, 'the connection was lost'],
]);

/** True if a class is that of the package `ws`. */
export const isWs = (WebSocket: WebSocketClass): boolean => 'on' in WebSocket.prototype;

/** Connects with the package `ws`, which shows pings and the responses to handshakes. */
export function connectWs(
  WebSocket: WebSocketClass,
  { url, socketKey, signal }: ListenOptions,
  lastEventId: string | undefined,
  deadAfterMs = DEAD_AFTER_MS,
): Connection {
  const headers = { authorization: `Bearer ${socketKey}`, ...(lastEventId !== undefined && { 'last-event-id': lastEventId }) };
  const socket = new WebSocket(url, ['cloudevents.json'], { headers, ...BOUNDS }) as WsSocket;
  const connection = new Connection(() => {
    clearTimeout(timer);
    socket.close(1000);
  }, signal);
  const drop = (reason: string) => {
    connection.end({ code: 1006, reason });
    socket.terminate();
  };
  const timer = setTimeout(() => drop('no sign of life'), deadAfterMs);
  socket.on('open', () => timer.refresh());
  socket.on('ping', () => timer.refresh());
  socket.on('message', (data) => {
    timer.refresh();
    connection.receive(String(data));
  });
  socket.on('unexpected-response', (_request, response) => {
    const { statusCode: status } = response;
    connection.end({ code: 1006, reason: `HTTP ${status}`, status, retryAfterMs: retryAfterMsOf(response) });
    socket.terminate();
  });
  // The message of OpenSSL is unreadable.
  socket.on('error', ({ code, message }) =>
    drop(code === 'EPROTO' ? 'no TLS is spoken there: should the URL begin with ws:// and not wss://?' : message),
  );
  socket.on('close', (code, reason) =>
    connection.end({ code, reason: REASONS.get(code) || String(reason) || `closed with ${code}` }),
  );
  return connection;
}

function retryAfterMsOf({ statusCode, headers }: HandshakeResponse): number {
  if (statusCode !== 429 && statusCode !== 503) return 0;
  return Math.min(Number(headers['retry-after']) || 0, RETRY_AFTER_SECONDS_MAX) * 1_000;
}
