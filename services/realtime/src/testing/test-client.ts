import { once } from 'node:events';
import { eventually } from '@latchkey/testkit/eventually';
import { onTestFinished } from 'vitest';
import { WebSocket } from 'ws';

/** A frame as a client reads it. */
export interface ReceivedFrame {
  readonly type: string;
  readonly sequence?: string;
  readonly data: Record<string, unknown>;
  readonly [attribute: string]: unknown;
}

export interface ConnectOptions {
  readonly lastEventId?: string;
  /** Query of the URL, with its question mark. */
  readonly query?: string;
  readonly headers?: Record<string, string>;
}

export type TestClient = ReturnType<typeof openTestClient>;

/** A client of the endpoint that stores all that it receives, until the test ends. */
export function openTestClient(port: number, key: string, { lastEventId, query = '', headers = {} }: ConnectOptions = {}) {
  const resume = lastEventId === undefined ? {} : { 'last-event-id': lastEventId };
  const ws = new WebSocket(`ws://127.0.0.1:${port}/api/v1/realtime${query}`, {
    headers: { authorization: `Bearer ${key}`, ...resume, ...headers },
  });
  onTestFinished(() => ws.terminate());
  const frames: ReceivedFrame[] = [];
  ws.on('error', () => undefined);
  ws.on('message', (data) => frames.push(JSON.parse(String(data))));
  const closed = once(ws, 'close').then(([code, reason]) => ({ code: code as number, reason: String(reason) }));
  /** The response where the upgrade was rejected. */
  const rejected = once(ws, 'unexpected-response').then(async ([, res]) => {
    return { status: res.statusCode as number, body: JSON.parse((await res.toArray()).join('')) };
  });
  for (const end of [closed, rejected]) end.catch(() => undefined);
  return {
    ws,
    frames,
    closed,
    rejected,
    get isOpen(): boolean {
      return ws.readyState === ws.OPEN;
    },
    /** The first frame, once it is there. */
    ready: () => eventually(() => frames[0] ?? false) as Promise<ReceivedFrame>,
    /** The sequences received, in the order of their arrival. */
    sequences: () => frames.flatMap(({ sequence }) => (sequence === undefined ? [] : Number(sequence))),
  };
}
