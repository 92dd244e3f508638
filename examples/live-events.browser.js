// Live events of a Latchkey application, for browsers: no dependencies. Paste it and change what
// you like. Users of the page can read the socket key in it, and listen to the application with
// it; the key permits nothing else.

/**
 * The types of live-events.node.mjs, without the HTTP status, which browsers hide. `failures`
 * counts the last connections that failed or ended early.
 *
 * @typedef {import('./live-events.node.mjs').LiveEvent} LiveEvent
 * @typedef {{ state: 'connecting' } | { state: 'connected', ready: LiveEvent }
 *   | { state: 'waiting', delayMs: number, reason: string, code: number, failures: number }} State
 * @typedef {{ url: string, socketKey: string, onEvent: (event: LiveEvent) => void,
 *   onState?: (state: State) => void, signal?: AbortSignal, lastEventId?: string }} ListenOptions
 * @typedef {{ random?: () => number, now?: () => number,
 *   wait?: (delayMs: number, signal: AbortSignal | undefined) => Promise<void> }} Clock
 */

/** Close codes that end the listening. */
const FINAL = new Map([
  [4102, /** @type {const} */ ('deleted')],
  [4103, /** @type {const} */ ('rotated')],
]);
/** After a connection of this length, the next delay is short again. */
const GOOD_AFTER_MS = 10_000;
/** Consecutive failures after which it tries every few minutes. */
const FAILURES_MANY = 10;

/**
 * Listens until `signal` is aborted or the key is no longer valid. Reconnects without limit, and
 * misses no event that the service still stores.
 *
 * `onEvent` gets each event once, in order. It also gets `latchkey.connection.ready` when events
 * may have been missed: on the first connection, and after a long absence. So the last `status`
 * and `version` that it got are always right.
 *
 * A browser shows no difference between a rejected key and an unreachable service. So this never
 * gives up: it tries less and less often, and `onState` gets the number of failures. After several
 * of them, a page should ask its server for the current key.
 *
 * @param {ListenOptions} options
 * @param {Clock} [clock]
 * @returns {Promise<'aborted' | 'deleted' | 'rotated'>} why it has ended
 */
export async function listen(options, clock = {}) {
  const { onEvent, onState = () => {}, signal } = options;
  const { random = Math.random, wait = sleep, now = () => performance.now() } = clock;
  let { lastEventId } = options;
  let failures = 0;
  while (!signal?.aborted) {
    onState({ state: 'connecting' });
    let readyAt = Number.POSITIVE_INFINITY;
    const { code, reason } = await connect(options, lastEventId, (event) => {
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
    const end = FINAL.get(code);
    if (end) return end;
    if (now() - readyAt >= GOOD_AFTER_MS) failures = 0;
    const limitMs = failures < FAILURES_MANY ? 30_000 : 300_000;
    // Random, so that the clients of a stopped node do not all reconnect in the same moment.
    const delayMs = Math.round(random() * Math.min(limitMs, 1_000 * 2 ** failures));
    failures += 1;
    onState({ state: 'waiting', delayMs, reason, code, failures });
    await wait(delayMs, signal);
  }
  return 'aborted';
}

/**
 * Opens one connection and resolves with the reason once it is closed. Rejects with what
 * `onFrame` throws.
 *
 * @param {ListenOptions} options
 * @param {string | undefined} lastEventId
 * @param {(event: any) => void} onFrame
 * @returns {Promise<{ code: number, reason: string }>}
 */
function connect({ url, socketKey, signal }, lastEventId, onFrame) {
  return new Promise((resolve, reject) => {
    const address = new URL(url);
    if (lastEventId !== undefined) address.searchParams.set('lastEventId', lastEventId);
    const socket = new WebSocket(address, ['cloudevents.json', `bearer.${socketKey}`]);
    const ended = new AbortController();
    /** @param {number} code @param {string} reason */
    const end = (code, reason) => {
      ended.abort();
      resolve({ code, reason });
      socket.close();
    };
    // A browser hides the service's pings, but reports a change of the network. The connection is
    // likely dead then, which would stay unnoticed for minutes.
    globalThis.addEventListener?.('online', () => end(1006, 'the network changed'), { signal: ended.signal });
    signal?.addEventListener('abort', () => end(1000, 'aborted'), { signal: ended.signal });
    socket.onclose = ({ code, reason }) => end(code, reason || `closed with ${code}`);
    socket.onmessage = ({ data }) => {
      try {
        onFrame(JSON.parse(data));
      } catch (err) {
        reject(err);
        end(1000, 'failed');
      }
    };
  });
}

/**
 * Waits, but no longer than until the network is back or the signal is aborted.
 *
 * @param {number} delayMs
 * @param {AbortSignal | undefined} signal
 * @returns {Promise<void>}
 */
function sleep(delayMs, signal) {
  return new Promise((resolve) => {
    const ended = new AbortController();
    const end = () => {
      ended.abort();
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(end, delayMs);
    globalThis.addEventListener?.('online', end, { signal: ended.signal });
    signal?.addEventListener('abort', end, { signal: ended.signal });
  });
}
