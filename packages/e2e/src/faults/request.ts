import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { type Answer, checkAnswer } from '../client/api.ts';

/** A promise that did not hold. */
export class Violation extends Error {
  override readonly name = 'Violation';
}

/** Part of a body that is sent before its sender goes away; the last is for chunked bodies. */
export const CUTS = ['nothing', 'half', 'all but a byte', 'all but the end mark'] as const;

export interface Cut {
  /** Or a number of bytes. */
  readonly after: (typeof CUTS)[number] | number;
  readonly by: 'FIN' | 'RST';
  /** Pause before the sender goes away. */
  readonly pauseMs?: number;
}

/** A request that is sent once, on its own connection. */
export interface FaultRequest {
  readonly method: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object | Buffer;
  readonly chunked?: boolean;
  readonly cut?: Cut | undefined;
  /** Pieces that the body is sent in, and the pause before each in milliseconds. */
  readonly pieces?: number;
  readonly pauseMs?: number;
}

/** No response came. */
export interface Lost {
  readonly lost: string;
  /** True if the server may have received the whole request. Otherwise it must have no effect. */
  readonly wasWhole: boolean;
}

export type Outcome = Answer | Lost;

/** Longest time to a response; an upload's deadline is 10 s in these runs. */
const RESPONSE_MS_MAX = 40_000;

export const isLost = (outcome: Outcome): outcome is Lost => 'lost' in outcome;

/** True if a request may have had its effect: an error of the server may follow the commit too. */
export const isInDoubt = (outcome: Outcome): boolean => (isLost(outcome) ? outcome.wasWhole : outcome.status >= 500);

export function describeOutcome(outcome: Outcome): string {
  return isLost(outcome) ? `lost ${outcome.lost}` : `${outcome.status} ${outcome.code}`.trim();
}

/**
 * Sends a request to a server that may go away and checks the form of its response.
 *
 * @throws {Violation} when neither a response nor the end of the connection comes
 */
export async function send(baseUrl: string, sent: FaultRequest): Promise<Outcome> {
  const { method, path, query, headers, body, chunked = false, cut, pieces = 1, pauseMs = 0 } = sent;
  const bytes = body instanceof Buffer ? body : Buffer.from(body ? JSON.stringify(body) : '');
  const type = body instanceof Buffer ? 'application/octet-stream' : 'application/json';
  const content = { ...(body && { 'content-type': type }), ...(!chunked && { 'content-length': bytes.length }) };
  const url = `${baseUrl}${path}${query ? `?${new URLSearchParams(query)}` : ''}`;
  const req = request(url, { method, agent: false, headers: { ...content, ...headers } });
  const progress = { wasWhole: bytes.length === 0, isOver: false };
  const outcome = readOutcome(req, `${method} ${path}`, progress);
  outcome.catch(() => undefined);
  req.flushHeaders();
  const length = {
    nothing: 0,
    half: bytes.length >> 1,
    'all but a byte': bytes.length - 1,
    'all but the end mark': bytes.length,
  };
  const part = cut ? bytes.subarray(0, typeof cut.after === 'number' ? cut.after : length[cut.after]) : bytes;
  const size = Math.max(1, Math.ceil(part.length / pieces));
  for (let start = 0; start < part.length && !progress.isOver; start += size) {
    if (pauseMs > 0) await pause(pauseMs);
    progress.wasWhole = !chunked && !cut && start + size >= bytes.length;
    if (!req.write(part.subarray(start, start + size))) await Promise.race([once(req, 'drain'), outcome]).catch(() => undefined);
  }
  if (cut) await leave(req, cut, outcome);
  else {
    progress.wasWhole = !progress.isOver;
    req.end();
  }
  return outcome;
}

function readOutcome(req: ClientRequest, what: string, progress: { wasWhole: boolean; isOver: boolean }): Promise<Outcome> {
  return new Promise<Outcome>((resolve, reject) => {
    const timer = setTimeout(() => req.destroy(new Error('TIMEOUT')), RESPONSE_MS_MAX);
    const end = () => {
      progress.isOver = true;
      clearTimeout(timer);
    };
    const lose = (err: NodeJS.ErrnoException) => {
      end();
      const lost = err.code ?? err.message;
      if (lost === 'TIMEOUT') reject(new Violation(`${what} had no response within ${RESPONSE_MS_MAX} ms`));
      resolve({ lost, wasWhole: progress.wasWhole && lost !== 'ECONNREFUSED' });
    };
    req.on('error', lose);
    req.on('response', (res: IncomingMessage) => {
      const chunks: Buffer[] = [];
      res.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', lose);
      res.on('end', () => {
        end();
        const response = { status: res.statusCode ?? 0, headers: new Headers(res.headers as Record<string, string>) };
        try {
          resolve(checkAnswer(what, { ...response, text: Buffer.concat(chunks).toString() }, true));
        } catch (err) {
          reject(new Violation((err as Error).message));
        }
      });
    });
  });
}

async function leave(req: ClientRequest, { by, pauseMs }: Cut, outcome: Promise<Outcome>): Promise<void> {
  const socket =
    req.socket ?? ((await Promise.race([once(req, 'socket').then(([opened]) => opened), outcome])) as ClientRequest['socket']);
  if (socket?.connecting) await Promise.race([once(socket, 'connect'), outcome]).catch(() => undefined);
  if (pauseMs) await Promise.race([pause(pauseMs), outcome]).catch(() => undefined);
  if (by === 'RST') socket?.resetAndDestroy?.();
  else socket?.end?.();
}
