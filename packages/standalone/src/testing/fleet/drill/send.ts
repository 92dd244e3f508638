import { type IncomingMessage, request } from 'node:http';
import { checkAnswer } from '../../api.ts';
import type { Kind, Samples } from './samples.ts';

/** A request of the drill. */
export interface DrillRequest {
  readonly kind: Kind;
  readonly baseUrl: string;
  readonly method: 'GET' | 'POST' | 'PATCH';
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: object | Buffer;
}

/** What came of it. */
export interface DrillOutcome {
  /** As in a sample. */
  readonly outcome: string;
  // biome-ignore lint/suspicious/noExplicitAny: the OpenAPI document is what answers are held to, elsewhere.
  readonly data: any;
}

/** How long a client waits before it gives up, in milliseconds. */
const PATIENCE_MS = { call: 15_000, upload: 40_000 };

/** Most bytes that are written to a connection at once. */
const PIECE_BYTES = 256 * 1_024;

/**
 * Sends a request on a connection of its own, once, and keeps what came of it. The form of every answer is checked; none at all is an outcome like
 * the others.
 */
export async function sendOnce(samples: Samples, sent: DrillRequest): Promise<DrillOutcome> {
  const { kind, method, path } = sent;
  const startedAt = performance.now();
  const { outcome, data } = await exchange(sent).then(
    (answer) => {
      try {
        const { status, code, data } = checkAnswer(`${method} ${path}`, answer, true);
        return { outcome: `${status} ${code}`.trim(), data };
      } catch (err) {
        samples.flaws.push((err as Error).message);
        return { outcome: `${answer.status} malformed`, data: undefined };
      }
    },
    (err: NodeJS.ErrnoException) => ({ outcome: `lost ${err.code ?? err.message}`, data: undefined }),
  );
  samples.all.push({ kind, startedAt, endedAt: performance.now(), outcome });
  return { outcome, data };
}

function exchange(sent: DrillRequest): Promise<{ status: number; headers: Headers; text: string }> {
  const { baseUrl, method, path, query, headers, body } = sent;
  const bytes = body instanceof Buffer ? body : body && Buffer.from(JSON.stringify(body));
  const patienceMs = body instanceof Buffer ? PATIENCE_MS.upload : PATIENCE_MS.call;
  const type = body instanceof Buffer ? 'application/octet-stream' : 'application/json';
  return new Promise((resolve, reject) => {
    const url = `${baseUrl}${path}${query ? `?${new URLSearchParams(query)}` : ''}`;
    const content = bytes && { 'content-type': type, 'content-length': bytes.length };
    const req = request(url, { agent: false, method, headers: { ...headers, ...content } });
    const timer = setTimeout(() => req.destroy(new Error(`patience after ${patienceMs} ms`)), patienceMs);
    req.on('close', () => clearTimeout(timer)).on('error', reject);
    req.on('response', (res: IncomingMessage) => {
      const chunks: Buffer[] = [];
      res.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject);
      res.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        resolve({ status: res.statusCode ?? 0, headers: new Headers(res.headers as Record<string, string>), text });
      });
    });
    for (let start = 0; bytes && start < bytes.length; start += PIECE_BYTES) {
      req.write(bytes.subarray(start, start + PIECE_BYTES));
    }
    req.end();
  });
}
