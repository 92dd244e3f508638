import { LatchkeyError } from '../errors.ts';
import { sleep } from '../http/retry.ts';
import type { Closed } from './connection.ts';
import type { ListenOptions, LiveEvent, WebSocketClass } from './events.ts';
import { delayMsMax, GOOD_AFTER_MS } from './reconnect.ts';
import { connectWebSocket, onOnline } from './web-socket.ts';
import { connectWs, isWs } from './ws.ts';

/** Chance and time, replaced in tests. */
export interface Clock {
  readonly random?: () => number;
  readonly now?: () => number;
  readonly wait?: (delayMs: number, signal: AbortSignal | undefined) => Promise<void>;
  readonly deadAfterMs?: number;
}

const APPLICATION_DELETED = 4102;
const KEY_ROTATED = 4103;
const WRONG_URL =
  'Is the URL right? It ends in /api/v1/realtime, on port 8081 unless set otherwise, and not on that of the REST interface.';
/** Statuses for which no further attempt helps. */
const REJECTIONS = new Map([
  [400, 'HTTP 400: the handshake was rejected. Is the URL right, with wss:// for TLS, and does a proxy pass all headers on?'],
  [401, 'The socket key is rejected: it is mistyped, was rotated, or its application was deleted. Get the current one.'],
  [404, `HTTP 404: unknown path. ${WRONG_URL}`],
  [405, `HTTP 405: this is not a WebSocket endpoint. ${WRONG_URL}`],
  [426, 'HTTP 426: the upgrade to a WebSocket did not arrive. Does a proxy in between pass it on?'],
]);

/** Yields live events as `Latchkey.events` does, without a client of the REST interface. */
export async function* listen(options: ListenOptions, clock: Clock = {}): AsyncGenerator<LiveEvent, void> {
  const { onState = () => undefined, signal } = options;
  const { random = Math.random, wait = waitToReconnect, now = () => performance.now() } = clock;
  const WebSocket = readWebSocketClass(options);
  const connect = isWs(WebSocket) ? connectWs : connectWebSocket;
  let { lastEventId } = options;
  let failures = 0;
  while (!signal?.aborted) {
    onState({ state: 'connecting' });
    if (signal?.aborted) return;
    let readyAt = Number.POSITIVE_INFINITY;
    const connection = connect(WebSocket, options, lastEventId, clock.deadAfterMs);
    try {
      for await (const event of connection.events()) {
        if (event.type === 'latchkey.connection.ready') {
          readyAt = now();
          onState({ state: 'connected', ready: event });
          // The missed events follow, and end with this snapshot.
          if (event.data.resumed) continue;
          lastEventId = `${event.epoch}:${event.data.lastSequence}`;
        } else if (event.sequence !== undefined) {
          // Events are delivered at least once. After a change of the epoch, `ready` came before.
          if (lastEventId !== undefined && Number(event.sequence) <= sequenceOf(lastEventId)) continue;
          lastEventId = `${event.epoch}:${event.sequence}`;
        }
        yield event;
        if (signal?.aborted) return;
      }
    } finally {
      connection.end({ code: 1000, reason: 'the reader has ended' });
    }
    const closed = connection.closed as Closed;
    if (signal?.aborted || closed.code === APPLICATION_DELETED) return;
    throwIfFinal(closed);
    const wasOpen = readyAt < Number.POSITIVE_INFINITY;
    if (now() - readyAt >= GOOD_AFTER_MS) failures = 0;
    const delayMs = (closed.retryAfterMs ?? 0) + Math.round(random() * delayMsMax(failures, wasOpen, isWs(WebSocket)));
    failures += 1;
    const { reason, code, status } = closed;
    onState({ state: 'waiting', delayMs, reason, code, status, failures });
    await wait(delayMs, signal);
  }
}

/** The sequence of `<epoch>:<sequence>` or `<sequence>`. */
const sequenceOf = (eventId: string) => Number(eventId.slice(eventId.indexOf(':') + 1));

function readWebSocketClass({ WebSocket, socketKey }: ListenOptions): WebSocketClass {
  const found = WebSocket ?? (globalThis as { readonly WebSocket?: WebSocketClass }).WebSocket;
  if (!found) throw new TypeError('This Node.js has no WebSocket: pass the option WebSocket, the class of the package ws');
  // An invalid header or sub-protocol would appear in the error of the socket.
  if (!/^[\x21-\x7e]+$/.test(socketKey)) throw new TypeError('socketKey has characters that no key has, or is empty');
  return found;
}

function throwIfFinal({ code, status = 0 }: Closed): void {
  const isOtherService = status >= 200 && status < 400;
  const rejection = isOtherService ? `HTTP ${status}: this is not a WebSocket endpoint. ${WRONG_URL}` : REJECTIONS.get(status);
  if (rejection !== undefined)
    throw new LatchkeyError(rejection, { code: status === 401 ? 'socket_key_rejected' : 'live_events_rejected', status });
  if (code === KEY_ROTATED)
    throw new LatchkeyError('The socket key was rotated: the list of applications has the new one.', {
      code: 'socket_key_rotated',
    });
}

/** Waits, but no longer than until a browser is online again or the signal is aborted. */
async function waitToReconnect(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  const ended = new AbortController();
  onOnline(() => ended.abort(), ended.signal);
  await sleep(delayMs, signal ? AbortSignal.any([signal, ended.signal]) : ended.signal).catch(() => undefined);
  ended.abort();
}
