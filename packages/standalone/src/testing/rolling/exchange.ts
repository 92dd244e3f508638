import { type Agent, type IncomingMessage, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

/** One request, to be sent once and never again. */
export interface ExchangeOptions {
  readonly method?: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Keeps connections where it is given; the request has one of its own otherwise. */
  readonly agent?: Agent;
  readonly body?: Uint8Array | string;
  /** Pieces that the body is sent in, and the pause before each in milliseconds. */
  readonly pieces?: number;
  readonly pauseMs?: number;
  /** Pause after each piece of the answer that is read, in milliseconds. */
  readonly readPauseMs?: number;
}

/** How a request ended. */
export interface Exchanged {
  /** Zero where there was no whole answer. */
  readonly status: number;
  readonly body: Buffer;
  /** Status and what the body says, or the error; and whether the connection had been used before. */
  readonly words: string;
}

/** Sends a request and reads its answer to the end. Never rejects. */
export async function exchange(url: string, options: ExchangeOptions): Promise<Exchanged> {
  const { method = 'GET', headers, agent = false, body = '', pieces = 1, pauseMs = 0, readPauseMs = 0 } = options;
  const bytes = Buffer.from(body as string);
  const req = request(url, { agent, method, headers: { ...headers, ...(body && { 'content-length': bytes.byteLength }) } });
  const lost = (err: NodeJS.ErrnoException): Exchanged => {
    const words = `${err.code ?? err.message}${req.reusedSocket ? ' on a kept connection' : ''}`;
    return { status: 0, body: Buffer.alloc(0), words };
  };
  const ended = new Promise<Exchanged>((resolve) => {
    req.on('error', (err) => resolve(lost(err)));
    req.on('response', (res) => void readAll(res, readPauseMs).then(resolve, (err) => resolve(lost(err))));
  });
  let isOver = false;
  void ended.then(() => {
    isOver = true;
  });
  const size = Math.max(1, Math.ceil(bytes.byteLength / pieces));
  for (let start = 0; pieces > 1 && start < bytes.byteLength && !isOver; start += size) {
    req.write(bytes.subarray(start, start + size));
    await delay(pauseMs);
  }
  req.end(pieces > 1 ? undefined : bytes);
  return ended;
}

async function readAll(res: IncomingMessage, pauseMs: number): Promise<Exchanged> {
  const chunks: Buffer[] = [];
  for await (const chunk of res) {
    chunks.push(chunk);
    if (pauseMs > 0) await delay(pauseMs);
  }
  const body = Buffer.concat(chunks);
  return { status: res.statusCode ?? 0, body, words: `${res.statusCode} ${body.subarray(0, 200)}` };
}
