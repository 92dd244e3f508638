// Live events of a Latchkey application, for Node.js with the package `ws`. Paste it and change
// what you like.
import { setTimeout as sleep } from 'node:timers/promises';
import WebSocket from 'ws';

/**
 * A CloudEvent of the service: /asyncapi.json describes each type. New types and properties may be
 * added. `sequence` counts the events of the application, in decimal; `latchkey.connection.ready`
 * has none.
 *
 * @typedef {{ specversion: '1.0', id: string, source: string, type: string, time: string,
 *   datacontenttype: string, sequence?: string, data: any }} LiveEvent
 *
 * What `listen` does. `ready.data.resumed`: no event was missed. `waiting`: the next try is after
 * `delayMs`; `code` is the close code, 1006 without one. `refused`: no further try helps.
 *
 * @typedef {{ state: 'connecting' }
 *   | { state: 'connected', ready: LiveEvent }
 *   | { state: 'waiting', delayMs: number, reason: string, code: number,
 *     status?: number | undefined }
 *   | { state: 'refused', reason: string, status?: number | undefined }} State
 *
 * `socketKey` is the `lk_sock_…` of the application. An error of `onEvent` ends the listening, as
 * `signal` does. `lastEventId` is the `sequence` of the last known event.
 *
 * @typedef {{ url: string, socketKey: string, onEvent: (event: LiveEvent) => void,
 *   onState?: (state: State) => void, signal?: AbortSignal, lastEventId?: string }} ListenOptions
 *
 * Chance and time, replaced in tests.
 *
 * @typedef {{ random?: () => number, now?: () => number, deadAfterMs?: number,
 *   wait?: (delayMs: number, value: undefined, options: { signal?: AbortSignal | undefined }) =>
 *     Promise<void> }} Clock
 * @typedef {'aborted' | 'deleted' | 'rotated' | 'refused'} End
 */

/** Close codes that end the listening. */
const FINAL = new Map([
  [4102, /** @type {const} */ ('deleted')],
  [4103, /** @type {const} */ ('rotated')],
]);
const WRONG_URL =
  'Is the URL right? It ends in /api/v1/realtime, on port 8081 unless set otherwise, and not on that of the REST interface.';
/** Statuses for which no further try helps. */
const REFUSALS = new Map([
  [400, 'HTTP 400: the handshake is not accepted. Is the URL right, with wss:// for TLS, and does a proxy pass all headers on?'],
  [401, 'The socket key is refused: it is mistyped, was rotated, or its application was deleted. get-applications shows it.'],
  [404, `HTTP 404: there is no such path. ${WRONG_URL}`],
  [405, `HTTP 405: what answers is no WebSocket endpoint. ${WRONG_URL}`],
  [426, 'HTTP 426: the upgrade to a WebSocket did not arrive. Does a proxy in between pass it on?'],
]);
/** Reasons of common close codes. */
const REASONS = new Map([
  [1001, 'the service is stopping'],
  [1006, 'the connection was lost'],
]);
/** The service pings every 30 s: after this time without a ping, the connection is dead. */
const DEAD_AFTER_MS = 75_000;
/** After a connection of this length, the next delay is short again. */
const GOOD_AFTER_MS = 10_000;

/**
 * Listens until `signal` is aborted or the key is no longer valid. Reconnects without limit, and
 * misses no event that the service still stores.
 *
 * `onEvent` gets each event once, in order. It also gets `latchkey.connection.ready` when events
 * may have been missed: on the first connection, and after a long absence. So the last `status`
 * and `version` that it got are always right.
 *
 * @param {ListenOptions} options
 * @param {Clock} [clock]
 * @returns {Promise<End>} why it has ended
 */
export async function listen(options, clock = {}) {
  const { onEvent, onState = () => {}, signal } = options;
  const { random = Math.random, wait = sleep, now = () => performance.now() } = clock;
  let { lastEventId } = options;
  let failures = 0;
  while (!signal?.aborted) {
    onState({ state: 'connecting' });
    let readyAt = Number.POSITIVE_INFINITY;
    const closed = await connect(options, lastEventId, clock, (event) => {
      if (event.type === 'latchkey.connection.ready') {
        readyAt = now();
        onState({ state: 'connected', ready: event });
        // The missed events follow, and end with this snapshot.
        if (event.data.resumed) return;
        lastEventId = event.data.lastSequence;
      } else if (event.sequence !== undefined) {
        // Events are delivered at least once.
        if (lastEventId !== undefined && Number(event.sequence) <= Number(lastEventId)) return;
        lastEventId = event.sequence;
      }
      onEvent(event);
    });
    if (signal?.aborted) break;
    const refusal = REFUSALS.get(closed.status ?? 0);
    if (refusal) {
      onState({ state: 'refused', reason: refusal, status: closed.status });
      return 'refused';
    }
    const end = FINAL.get(closed.code);
    if (end) return end;
    if (now() - readyAt >= GOOD_AFTER_MS) failures = 0;
    // Random, so that the clients of a stopped node do not all reconnect in the same moment.
    const delayMs = closed.retryAfterMs + Math.round(random() * Math.min(30_000, 1_000 * 2 ** failures));
    failures += 1;
    onState({ state: 'waiting', delayMs, reason: closed.reason, code: closed.code, status: closed.status });
    await wait(delayMs, undefined, { signal }).catch(() => {});
  }
  return 'aborted';
}

/**
 * Opens one connection and resolves with the reason once it is closed. Rejects with what `onFrame`
 * throws.
 *
 * @param {ListenOptions} options
 * @param {string | undefined} lastEventId
 * @param {Clock} clock
 * @param {(event: any) => void} onFrame
 * @returns {Promise<{ code: number, reason: string, status: number | undefined,
 *   retryAfterMs: number }>}
 */
function connect({ url, socketKey, signal }, lastEventId, { deadAfterMs = DEAD_AFTER_MS }, onFrame) {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${socketKey}`, ...(lastEventId !== undefined && { 'last-event-id': lastEventId }) };
    const bounds = { handshakeTimeout: 10_000, closeTimeout: 1_000, maxPayload: 65_536, perMessageDeflate: false };
    const socket = new WebSocket(url, ['cloudevents.json'], { headers, ...bounds });
    let reason = '';
    /** @type {number | undefined} */
    let status;
    let retryAfterMs = 0;

    const close = () => socket.close(1000);
    signal?.addEventListener('abort', close, { once: true });
    const deathTimer = setTimeout(() => {
      reason ||= 'no sign of life';
      socket.terminate();
    }, deadAfterMs);
    socket.on('open', () => deathTimer.refresh());
    socket.on('ping', () => deathTimer.refresh());
    socket.on('message', (text) => {
      deathTimer.refresh();
      try {
        if (!signal?.aborted) onFrame(JSON.parse(String(text)));
      } catch (err) {
        reject(err);
        socket.removeAllListeners('message');
        socket.terminate();
      }
    });
    socket.on('unexpected-response', (_request, response) => {
      status = response.statusCode;
      reason ||= `HTTP ${status}`;
      // At most five minutes, as a proxy may send any value.
      if (status === 429 || status === 503) retryAfterMs = Math.min(Number(response.headers['retry-after']) || 0, 300) * 1_000;
      socket.terminate();
    });
    socket.on('error', (/** @type {NodeJS.ErrnoException} */ err) => {
      // The message of OpenSSL is unreadable.
      reason ||= err.code === 'EPROTO' ? 'no TLS is spoken there: should the URL begin with ws:// and not wss://?' : err.message;
    });
    socket.on('close', (code, text) => {
      clearTimeout(deathTimer);
      signal?.removeEventListener('abort', close);
      resolve({ code, reason: reason || REASONS.get(code) || String(text) || `closed with ${code}`, status, retryAfterMs });
    });
  });
}
