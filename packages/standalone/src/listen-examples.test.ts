import { listen as listenInBrowser } from '@latchkey/examples/live-events.browser.js';
import { type LiveEvent, listen as listenInNode } from '@latchkey/examples/live-events.node.mjs';
import { eventually } from '@latchkey/testkit/eventually';
import { afterEach, describe, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import {
  eventText,
  readyText,
  type ScriptedLiveServer,
  startScriptedLiveServer,
  type Turn,
} from './testing/scripted-live-server.ts';

const KEY = 'lk_sock_00000000000000000000000000000000';
/** The part of a state that both examples have. */
type AnyState = { readonly state: string; readonly code?: number; readonly ready?: LiveEvent };

let server: ScriptedLiveServer;
const stops: AbortController[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) stop.abort();
  await server.stop();
});

interface Options {
  readonly lastEventId?: string;
  readonly onEvent?: (event: LiveEvent) => void;
  readonly random?: () => number;
  readonly now?: () => number;
  readonly deadAfterMs?: number;
  /** From this wait on, waits for the signal instead of not at all. */
  readonly waitsMax?: number;
}

/** Lets a client listen to a server that takes these turns. */
async function start(listen: typeof listenInNode | typeof listenInBrowser, turns: readonly Turn[], options: Options = {}) {
  server = await startScriptedLiveServer(turns);
  const { lastEventId, onEvent, waitsMax = Number.POSITIVE_INFINITY, ...clock } = options;
  const stop = new AbortController();
  stops.push(stop);
  const events: LiveEvent[] = [];
  const states: AnyState[] = [];
  const delays: number[] = [];
  const aborted = new Promise<void>((resolve) => stop.signal.addEventListener('abort', () => resolve()));
  const wait = async (delayMs: number) => {
    delays.push(delayMs);
    if (delays.length >= waitsMax) await aborted;
  };
  const ended = listen(
    {
      url: server.url,
      socketKey: KEY,
      onEvent: onEvent ?? ((event) => events.push(event)),
      onState: (state: AnyState) => void states.push(state),
      signal: stop.signal,
      ...(lastEventId !== undefined && { lastEventId }),
    },
    { ...clock, wait },
  );
  ended.catch(() => undefined);
  const sequences = () => events.map(({ sequence }) => sequence ?? 'ready');
  return { ended, stop, events, sequences, states, delays };
}

/** A turn that sends these frames and closes. */
const send =
  (texts: readonly string[], closeCode?: number): Turn =>
  (socket: WebSocket) => {
    for (const text of texts) socket.send(text);
    if (closeCode !== undefined) socket.close(closeCode);
  };

const lastEventIdOf = (at: number) => {
  const { headers, url = '' } = server.requests[at] ?? {};
  return headers?.['last-event-id'] ?? new URL(url, 'http://unused').searchParams.get('lastEventId');
};

describe.each([
  ['Node.js', listenInNode],
  ['browsers', listenInBrowser],
])('the example for %s', (name, listen) => {
  const isBrowser = name === 'browsers';

  it('shows its key, and resumes after the last event that it has seen', async () => {
    const { ended, sequences, states } = await start(listen, [
      send([readyText(4, false), eventText(5), eventText(6)], 1001),
      send([readyText(8, true), eventText(7), eventText(8)], 4102),
    ]);
    expect(await ended).toBe('deleted');
    expect(states.map(({ state, ready, code }) => [state, ready?.data.resumed ?? code])).toEqual([
      ['connecting', undefined],
      ['connected', false],
      ['waiting', 1001],
      ['connecting', undefined],
      ['connected', true],
    ]);
    expect([lastEventIdOf(0), lastEventIdOf(1)]).toEqual([null, '6']);
    expect(sequences()).toEqual(['ready', '5', '6', '7', '8']);
    const { headers } = server.requests[1] ?? {};
    const shown = [headers?.authorization, headers?.['sec-websocket-protocol']?.replace(/,\s*/, ', ')];
    expect(shown).toEqual(isBrowser ? [undefined, `cloudevents.json, bearer.${KEY}`] : [`Bearer ${KEY}`, 'cloudevents.json']);
  });

  it('begins after the event that it is told, and drops events that it has seen', async () => {
    const texts = [3, 3, 2, 4].map(eventText);
    const { ended, sequences } = await start(listen, [send([readyText(4, true), ...texts], 4102)], { lastEventId: '2' });
    await ended;
    expect([lastEventIdOf(0), sequences()]).toEqual(['2', ['3', '4']]);
  });

  it('takes the snapshot where events are no longer held, also one that is older than what it knows', async () => {
    const { ended, sequences } = await start(
      listen,
      [send([readyText(20, false), eventText(21)], 1001), send([readyText(2, false), eventText(3)], 1001), send([], 4102)],
      { lastEventId: '7' },
    );
    await ended;
    expect(sequences()).toEqual(['ready', '21', 'ready', '3']);
    expect([0, 1, 2].map(lastEventIdOf)).toEqual(['7', '21', '3']);
  });

  it('stops for good when the key was rotated', async () => {
    const { ended, delays } = await start(listen, [send([readyText(0, false)], 4103)]);
    expect(await ended).toBe('rotated');
    expect([server.requests.length, delays]).toEqual([1, []]);
  });

  it('waits at random for longer and longer, up to 30 s', async () => {
    const longest = await start(listen, [send([readyText(0, false)], 1001)], { random: () => 1, now: () => 0, waitsMax: 8 });
    await eventually(() => longest.delays.length === 8);
    expect(longest.delays).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
    await server.stop();
    const half = await start(listen, [send([], 4202)], { random: () => 0.5, waitsMax: 2 });
    await eventually(() => half.delays.length === 2);
    expect(half.delays).toEqual([500, 1_000]);
  });

  it('waits briefly again after a connection of ten seconds', async () => {
    // It reads the clock at `ready` and at the end.
    const lastingMs = [0, 9_999, 10_000, 0];
    const times = lastingMs.flatMap((ms) => [0, ms]);
    const options = { random: () => 1, now: () => times.shift() ?? Number.NaN, waitsMax: lastingMs.length };
    const { delays } = await start(listen, [send([readyText(0, false)], 1001)], options);
    await eventually(() => delays.length === lastingMs.length);
    expect(delays).toEqual([1_000, 2_000, 1_000, 2_000]);
  });

  it('goes on where nothing listens', async () => {
    const { delays, states } = await start(listen, [send([], 1001)], { waitsMax: 5 });
    await server.stop();
    await eventually(() => delays.length === 5);
    expect(states.at(-1)).toMatchObject({ state: 'waiting', code: 1006 });
  });

  it('ends when it is told to, while it listens and while it waits', async () => {
    const listening = await start(listen, [send([readyText(0, false)])]);
    await eventually(() => listening.events.length === 1);
    listening.stop.abort();
    expect(await listening.ended).toBe('aborted');
    await eventually(() => server.open.size === 0);
    expect(server.requests).toHaveLength(1);
    await server.stop();
    const waiting = await start(listen, [send([], 1001)], { waitsMax: 1 });
    await eventually(() => waiting.delays.length === 1);
    waiting.stop.abort();
    expect(await waiting.ended).toBe('aborted');
    expect(server.requests).toHaveLength(1);
  });

  it('ends with what its caller throws, and handles no further event', async () => {
    let calls = 0;
    const onEvent = () => {
      calls += 1;
      throw new Error('of the caller');
    };
    const { ended } = await start(listen, [send([readyText(0, false), eventText(1), eventText(2)])], { onEvent });
    await expect(ended).rejects.toThrow('of the caller');
    await eventually(() => server.open.size === 0);
    expect([calls, server.requests.length]).toEqual([1, 1]);
  });
});

describe('the example for Node.js', () => {
  it.each([400, 401, 404, 405, 426])('stops for good at %i, and says why', async (status) => {
    const { ended, states } = await start(listenInNode, [{ status }]);
    expect(await ended).toBe('refused');
    expect(server.requests).toHaveLength(1);
    expect(states.at(-1)).toEqual({ state: 'refused', status, reason: expect.stringMatching(/[.?]$/) });
  });

  it.each([
    [429, '7', 7_500],
    [503, '2', 2_500],
    [503, '100000', 300_500],
    [429, 'soon', 500],
    [502, '7', 500],
  ])('after %i with Retry-After: %s waits %i ms', async (status, retryAfter, expected) => {
    const options = { random: () => 0.5, waitsMax: 1 };
    const { delays, states } = await start(listenInNode, [{ status, headers: { 'Retry-After': retryAfter } }], options);
    await eventually(() => delays.length === 1);
    expect(delays).toEqual([expected]);
    expect(states.at(-1)).toMatchObject({ state: 'waiting', reason: `HTTP ${status}`, status });
  });

  it('gives up a connection without a sign of life, and no other', async () => {
    const deadAfterMs = 400;
    let stoodMs = 0;
    // Pings one after the other for twice as long, then falls silent without closing.
    const turn: Turn = (socket) => {
      const startedAt = performance.now();
      socket.send(readyText(0, false));
      const ping = () => performance.now() - startedAt < 2 * deadAfterMs && socket.ping();
      socket.on('pong', () => setImmediate(ping));
      socket.on('close', () => (stoodMs = performance.now() - startedAt));
      ping();
    };
    const { delays, states } = await start(listenInNode, [turn], { deadAfterMs, waitsMax: 1 });
    await eventually(() => delays.length === 1, { timeoutMs: 15_000 });
    await eventually(() => stoodMs > 0);
    expect(stoodMs).toBeGreaterThanOrEqual(3 * deadAfterMs - 100);
    expect(states.at(-1)).toMatchObject({ state: 'waiting', reason: 'no sign of life' });
  });
});

describe('the example for browsers', () => {
  it('tries rarely after many failures, and says how many', async () => {
    const { delays, states } = await start(listenInBrowser, [{ status: 401 }], { random: () => 1, waitsMax: 12 });
    await eventually(() => delays.length === 12);
    expect(delays.slice(8)).toEqual([30_000, 30_000, 300_000, 300_000]);
    expect(states.at(-1)).toMatchObject({ failures: 12 });
  });
});
