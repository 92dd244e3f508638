import { once } from 'node:events';
import { eventually } from '@latchkey/testkit/eventually';
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

/** A client of the endpoint that stores all that it receives. */
export class TestClient {
  readonly ws: WebSocket;
  readonly frames: ReceivedFrame[] = [];
  readonly closed: Promise<{ code: number; reason: string }>;
  /** The response where the upgrade was rejected. */
  readonly rejected: Promise<{ status: number; body: Record<string, unknown> }>;

  constructor(port: number, key: string, { lastEventId, query = '', headers = {} }: ConnectOptions = {}) {
    const resume = lastEventId === undefined ? {} : { 'last-event-id': lastEventId };
    this.ws = new WebSocket(`ws://127.0.0.1:${port}/api/v1/realtime${query}`, {
      headers: { authorization: `Bearer ${key}`, ...resume, ...headers },
    });
    this.ws.on('error', () => undefined);
    this.ws.on('message', (data) => this.frames.push(JSON.parse(String(data))));
    this.closed = once(this.ws, 'close').then(([code, reason]) => ({ code, reason: String(reason) }));
    this.rejected = once(this.ws, 'unexpected-response').then(async ([, res]) => {
      return { status: res.statusCode, body: JSON.parse((await res.toArray()).join('')) };
    });
    for (const end of [this.closed, this.rejected]) end.catch(() => undefined);
  }

  get isOpen(): boolean {
    return this.ws.readyState === this.ws.OPEN;
  }

  /** The first frame, once it is there. */
  async ready(): Promise<ReceivedFrame> {
    return eventually(() => this.frames[0] ?? false) as Promise<ReceivedFrame>;
  }

  /** The sequences received, in the order of their arrival. */
  sequences(): number[] {
    return this.frames.flatMap(({ sequence }) => (sequence === undefined ? [] : Number(sequence)));
  }
}
