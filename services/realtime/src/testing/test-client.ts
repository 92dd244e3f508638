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

/** What an upgrade is tried with beside the key. */
export interface ConnectOptions {
  readonly lastEventId?: string;
  readonly query?: string;
  readonly headers?: Record<string, string>;
  readonly protocols?: readonly string[];
  readonly autoPong?: boolean;
}

/** A client of the endpoint that keeps all that it is sent. */
export class TestClient {
  readonly ws: WebSocket;
  readonly frames: ReceivedFrame[] = [];
  readonly closed: Promise<{ code: number; reason: string }>;
  /** The answer where the upgrade was refused. */
  readonly refused: Promise<{ status: number; headers: Record<string, unknown>; body: Record<string, unknown> }>;

  constructor(port: number, key: string | undefined, options: ConnectOptions = {}) {
    const { lastEventId, query = '', headers = {}, protocols = [], autoPong = true } = options;
    this.ws = new WebSocket(`ws://127.0.0.1:${port}/api/v1/realtime${query}`, [...protocols], {
      autoPong,
      perMessageDeflate: false,
      headers: {
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
        ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
        ...headers,
      },
    });
    this.ws.on('error', () => undefined);
    this.ws.on('message', (data) => this.frames.push(JSON.parse(String(data))));
    this.closed = once(this.ws, 'close').then(([code, reason]) => ({ code, reason: String(reason) }));
    this.refused = once(this.ws, 'unexpected-response').then(async ([, res]) => {
      const text = (await res.toArray()).join('');
      return { status: res.statusCode, headers: res.headers, body: JSON.parse(text) };
    });
    // Whoever wants to know asks.
    for (const end of [this.closed, this.refused]) end.catch(() => undefined);
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
