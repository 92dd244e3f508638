import { eventually } from '@latchkey/testkit/eventually';
import {
  eventText,
  readyText,
  type ScriptedLiveServer,
  startScriptedLiveServer,
  type Turn,
} from '@latchkey/testkit/network/scripted-live-server';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket as Ws } from 'ws';
import type { ConnectionState, LiveEvent, WebSocketClass } from './events.ts';
import { type Clock, listen } from './listen.ts';

const KEY = 'lk_sock_00000000000000000000000000000000';

let server: ScriptedLiveServer;
const stops: AbortController[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) stop.abort();
  await server.stop();
});

interface Options extends Omit<Clock, 'wait'> {
  readonly lastEventId?: string;
  readonly onEvent?: (event: LiveEvent) => unknown;
  /** From this wait on, waits for the signal instead of not at all. */
  readonly waitsMax?: number;
}

/** Lets a client listen to a server that takes these turns. */
async function start(WebSocket: WebSocketClass, turns: readonly Turn[], options: Options = {}) {
  server = await startScriptedLiveServer(turns);
  const { lastEventId, onEvent, waitsMax = Number.POSITIVE_INFINITY, ...clock } = options;
  const stop = new AbortController();
  stops.push(stop);
  const events: LiveEvent[] = [];
  const states: ConnectionState[] = [];
  const delays: number[] = [];
  const aborted = new Promise<void>((resolve) => stop.signal.addEventListener('abort', () => resolve()));
  const wait = async (delayMs: number) => {
    delays.push(delayMs);
    if (delays.length >= waitsMax) await aborted;
  };
  const { url } = server;
  const onState = (state: ConnectionState) => void states.push(state);
  const heard = listen(
    { url, socketKey: KEY, WebSocket, onState, signal: stop.signal, ...(lastEventId !== undefined && { lastEventId }) },
    { ...clock, wait },
  );
  const ended = (async () => {
    for await (const event of heard) await (onEvent ?? ((one) => events.push(one)))(event);
    return 'ended';
  })();
  ended.catch(() => undefined);
  const sequences = () => events.map(({ sequence }) => sequence ?? 'ready');
  return { ended, stop, events, sequences, states, delays };
}

/** A turn that sends these frames and closes. */
const send =
  (texts: readonly string[], closeCode?: number): Turn =>
  (socket: Ws) => {
    for (const text of texts) socket.send(text);
    if (closeCode !== undefined) socket.close(closeCode);
  };

const lastEventIdOf = (at: number) => {
  const { headers, url = '' } = server.requests[at] ?? {};
  return headers?.['last-event-id'] ?? new URL(url, 'http://unused').searchParams.get('lastEventId');
};

describe.each([
  ['of ws', Ws],
  ['of browsers', WebSocket as unknown as WebSocketClass],
])('live events by the WebSocket %s', (_name, Class) => {
  const isBrowser = Class !== Ws;

  it('shows its key, and resumes after the last event that it has seen', async () => {
    const { ended, sequences, states } = await start(Class, [
      send([readyText(4, false), eventText(5), eventText(6)], 1001),
      send([readyText(8, true), eventText(7), eventText(8)], 4102),
    ]);
    expect(await ended).toBe('ended');
    expect(
      states.map((one) => [one.state, one.state === 'connected' ? one.ready.data.resumed : 'code' in one ? one.code : undefined]),
    ).toEqual([
      ['connecting', undefined],
      ['connected', false],
      ['waiting', 1001],
      ['connecting', undefined],
      ['connected', true],
    ]);
    expect([lastEventIdOf(0), lastEventIdOf(1)]).toEqual([null, 'e1:6']);
    expect(sequences()).toEqual(['ready', '5', '6', '7', '8']);
    const { headers } = server.requests[1] ?? {};
    const shown = [headers?.authorization, headers?.['sec-websocket-protocol']?.replace(/,\s*/, ', ')];
    expect(shown).toEqual(isBrowser ? [undefined, `cloudevents.json, bearer.${KEY}`] : [`Bearer ${KEY}`, 'cloudevents.json']);
  });

  it('begins after the given event, and drops events that it has seen', async () => {
    const texts = [3, 3, 2, 4].map(eventText);
    const { ended, sequences } = await start(Class, [send([readyText(4, true), ...texts], 4102)], { lastEventId: '2' });
    await ended;
    expect([lastEventIdOf(0), sequences()]).toEqual(['2', ['3', '4']]);
  });

  it('takes the snapshot where events are no longer held, also one that is older than what it knows', async () => {
    const { ended, sequences } = await start(
      Class,
      [send([readyText(20, false), eventText(21)], 1001), send([readyText(2, false), eventText(3)], 1001), send([], 4102)],
      { lastEventId: '7' },
    );
    await ended;
    expect(sequences()).toEqual(['ready', '21', 'ready', '3']);
    expect([0, 1, 2].map(lastEventIdOf)).toEqual(['7', 'e1:21', 'e1:3']);
  });

  it('stops for good when the key was rotated', async () => {
    const { ended, delays } = await start(Class, [send([readyText(0, false)], 4103)]);
    await expect(ended).rejects.toMatchObject({ code: 'socket_key_rotated', message: expect.stringMatching(/[.]$/) });
    expect([server.requests.length, delays]).toEqual([1, []]);
  });

  it('waits at random for longer and longer, up to 30 s', async () => {
    const longest = await start(Class, [send([readyText(0, false)], 1001)], { random: () => 1, now: () => 0, waitsMax: 8 });
    await eventually(() => longest.delays.length === 8);
    expect(longest.delays).toEqual([10_000, 10_000, 10_000, 10_000, 16_000, 30_000, 30_000, 30_000]);
    await server.stop();
    const failed = await start(Class, [send([], 4202)], { random: () => 0.5, waitsMax: 3 });
    await eventually(() => failed.delays.length === 3);
    expect(failed.delays).toEqual([500, 1_000, 2_000]);
  });

  it('waits briefly again after a connection of ten seconds', async () => {
    // It reads the clock at `ready` and at the end.
    const lastingMs = [0, 0, 0, 0, 9_999, 10_000];
    const times = lastingMs.flatMap((ms) => [0, ms]);
    const options = { random: () => 1, now: () => times.shift() ?? Number.NaN, waitsMax: lastingMs.length };
    const { delays } = await start(Class, [send([readyText(0, false)], 1001)], options);
    await eventually(() => delays.length === lastingMs.length);
    expect(delays).toEqual([10_000, 10_000, 10_000, 10_000, 16_000, 10_000]);
  });

  it('retries where no server listens', async () => {
    const { delays, states } = await start(Class, [send([], 1001)], { waitsMax: 5 });
    await server.stop();
    await eventually(() => delays.length === 5);
    expect(states.at(-1)).toMatchObject({ state: 'waiting', code: 1006 });
  });

  it('ends on request, while it listens and while it waits', async () => {
    const listening = await start(Class, [send([readyText(0, false)])]);
    await eventually(() => listening.events.length === 1);
    listening.stop.abort();
    expect(await listening.ended).toBe('ended');
    await eventually(() => server.open.size === 0);
    expect(server.requests).toHaveLength(1);
    await server.stop();
    const waiting = await start(Class, [send([], 1001)], { waitsMax: 1 });
    await eventually(() => waiting.delays.length === 1);
    waiting.stop.abort();
    expect(await waiting.ended).toBe('ended');
    expect(server.requests).toHaveLength(1);
  });

  it.each(['connecting', 'waiting'])('ends when its caller aborts it in onState of %s', async (state) => {
    server = await startScriptedLiveServer([{ status: 503, headers: { 'Retry-After': '300' } }]);
    const stop = new AbortController();
    const onState = (one: ConnectionState) => one.state === state && stop.abort();
    const options = { url: server.url, socketKey: KEY, WebSocket: Class, onState, signal: stop.signal };
    expect(await listen(options, { random: () => 1 }).next()).toEqual({ done: true, value: undefined });
    expect(server.requests).toHaveLength(state === 'connecting' ? 0 : 1);
  });

  it('stores a bounded number of events for a slow reader, and loses none', async () => {
    const COUNT = 2_500;
    const turn: Turn = (socket) => {
      const last = Number(String(lastEventIdOf(server.requests.length - 1) ?? 0).replace('e1:', ''));
      socket.send(readyText(COUNT, true));
      for (let sequence = last + 1; sequence <= COUNT; sequence += 1) socket.send(eventText(sequence));
      if (last > 0) socket.close(4102);
    };
    const read: string[] = [];
    const readSlowly = async (event: LiveEvent) => {
      read.push(event.sequence ?? 'ready');
      if (read.length === 2) await eventually(() => server.open.size === 0);
    };
    const { ended, states } = await start(Class, [turn], { onEvent: readSlowly, lastEventId: '0' });
    await ended;
    expect(states).toContainEqual(expect.objectContaining({ state: 'waiting', reason: 'events were read too slowly' }));
    expect(read).toEqual(Array.from({ length: COUNT }, (_, i) => String(i + 1)));
  });

  it('ends with what its caller throws, and handles no further event', async () => {
    let calls = 0;
    const onEvent = () => {
      calls += 1;
      throw new Error('of the caller');
    };
    const { ended } = await start(Class, [send([readyText(0, false), eventText(1), eventText(2)])], { onEvent });
    await expect(ended).rejects.toThrow('of the caller');
    await eventually(() => server.open.size === 0);
    expect([calls, server.requests.length]).toEqual([1, 1]);
  });
});

describe('live events by ws', () => {
  it.each([200, 400, 401, 404, 405, 426])('stops for good at %i, and says why', async (status) => {
    const { ended } = await start(Ws, [{ status }]);
    const code = status === 401 ? 'socket_key_rejected' : 'live_events_rejected';
    await expect(ended).rejects.toMatchObject({ code, status, message: expect.stringMatching(/[.?]$/) });
    expect(server.requests).toHaveLength(1);
  });

  it.each([
    [429, '7', 7_500],
    [503, '2', 2_500],
    [503, '100000', 300_500],
    [429, 'soon', 500],
    [502, '7', 500],
  ])('after %i with Retry-After: %s waits %i ms', async (status, retryAfter, expected) => {
    const options = { random: () => 0.5, waitsMax: 1 };
    const { delays, states } = await start(Ws, [{ status, headers: { 'Retry-After': retryAfter } }], options);
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
    const { delays, states } = await start(Ws, [turn], { deadAfterMs, waitsMax: 1 });
    await eventually(() => delays.length === 1, { timeoutMs: 15_000 });
    await eventually(() => stoodMs > 0);
    expect(stoodMs).toBeGreaterThanOrEqual(3 * deadAfterMs - 100);
    expect(states.at(-1)).toMatchObject({ state: 'waiting', reason: 'no sign of life' });
  });
});

describe('live events by the WebSocket of browsers', () => {
  it('tries rarely after many failures, and says how many', async () => {
    const { delays, states } = await start(WebSocket as unknown as WebSocketClass, [{ status: 401 }], {
      random: () => 1,
      waitsMax: 12,
    });
    await eventually(() => delays.length === 12);
    expect(delays.slice(8)).toEqual([30_000, 30_000, 300_000, 300_000]);
    expect(states.at(-1)).toMatchObject({ failures: 12 });
  });
});
