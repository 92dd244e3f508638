// @ts-check
// Live events of a Latchkey application, for browsers: no dependencies. Paste it and change what
// you like. Whoever has the page can read the socket key in it, and listen to the application
// with it; it opens nothing else.

/** Close codes after which the key opens nothing any more. */
const FINAL = new Map([
  [4102, /** @type {const} */ ('deleted')],
  [4103, /** @type {const} */ ('rotated')],
]);
/** A connection that has stood for so long was a good one: the next delay is short again. */
const GOOD_AFTER_MS = 10_000;
/** Failures in a row after which it tries only now and then. */
const FAILURES_MANY = 10;

/**
 * Listens until `signal` is aborted or the key is good for nothing any more. Reconnects for as
 * long as it takes, and misses nothing that the service still holds.
 *
 * `onEvent` gets each event once, in order. It gets `latchkey.connection.ready` too, but only
 * where that stands in for what may have been missed: on the first connection, and after an
 * absence that was too long. So the newest `status` and `version` that it was given are always
 * right.
 *
 * A browser does not tell a key that is refused from a service that can't be reached. So this
 * never gives up by itself: it tries less and less often, at last every few minutes, and tells
 * `onState` how often in a row it has failed. That is when a page should ask its own server for
 * the present key.
 *
 * @param {import('./live-events.browser.d.ts').ListenOptions} options
 * @param {import('./live-events.browser.d.ts').Clock} [clock] chance and time, for tests
 * @returns {ReturnType<typeof import('./live-events.browser.d.ts').listen>} why it has ended
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
        // What was missed follows, and leads up to this snapshot.
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
    // At random, so that all the clients of a node that went away do not come back in the same
    // moment.
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
 * @param {import('./live-events.browser.d.ts').ListenOptions} options
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
    // The browser answers the service's pings but does not show them. What it does tell is that
    // the network has changed, and with it a connection is likely to be dead, which would go
    // unnoticed for minutes.
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
