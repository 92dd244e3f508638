import { type DescMethodUnary, type Message, toBinary } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, type ContextValues } from '@connectrpc/connect';
import type { Pool } from 'undici';
import { methodPath } from './bound-method.ts';
import { type Abortable, canceled, timeLeftMs } from './call-bounds.ts';
import { HedgedExchange, type Hedges } from './hedged-exchange.ts';
import { type LeanAnswer, LeanExchange } from './lean-exchange.ts';
import { tooLarge } from './lean-request.ts';
import { REPEATABLE } from './repeatable.ts';
import { MESSAGE_BYTES_MAX } from './route.ts';
import type { HeaderSource } from './unary-context.ts';

/** Headers that the protocol sets, and that a caller's own can't. */
const RESERVED = new Set([
  'authorization',
  'connect-protocol-version',
  'connect-timeout-ms',
  'content-encoding',
  'content-length',
  'content-type',
]);

/** Most tries of a call that nobody has read: as many connections of a service that stops may be closed one after the other. */
const TRIES_MAX = 4;

/** Where calls are sent. */
export interface PoolOfCalls {
  readonly pool: Pool;
  /** Shared by all calls over the pool. */
  readonly hedges: Hedges;
}

/** What a caller gives beside the message. */
export interface Given {
  readonly header: HeaderSource;
  readonly values?: ContextValues | undefined;
}

/** A unary call over a pool: one exchange, or more where it is sure that no handler has run, or that it does not matter. */
export class LeanCall implements Abortable {
  readonly #pool: Pool;
  readonly #authorization: string;
  readonly #deadlineAt: number;
  readonly #hedges: Hedges;
  #exchange: LeanExchange | HedgedExchange | undefined;
  #isOver = false;

  /** @param timeoutMs time until the deadline of which the service is told, in milliseconds */
  constructor({ pool, hedges }: PoolOfCalls, authorization: string, timeoutMs: number) {
    this.#pool = pool;
    this.#hedges = hedges;
    this.#authorization = authorization;
    this.#deadlineAt = performance.now() + timeoutMs;
  }

  /**
   * Sends the call. What was not sent, or came to a connection as it was closed, is sent again whatever it is; what got no answer, or
   * none soon, only where the method has no side effects, or the caller says that it does not matter, and once.
   *
   * @throws ConnectError
   */
  async send(method: DescMethodUnary, message: Message, { header, values }: Given): Promise<LeanAnswer> {
    const body = serialize(method, message);
    const isRead = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS || values?.get(REPEATABLE) === true;
    let unanswered = 0;
    for (let tries = 1; ; tries += 1) {
      const mayTryAgain = () => !this.#isOver && tries < TRIES_MAX;
      try {
        const answer = await this.#exchangeOnce({ method, body, header, isRead });
        if (!isNotTaken(answer) || !mayTryAgain()) return answer;
      } catch (err) {
        const exchange = this.#exchange;
        const isUnanswered = err instanceof ConnectError && err.code === Code.Unavailable && !exchange?.isAnswered;
        if (exchange?.isSent) unanswered += 1;
        if (!isUnanswered || (exchange?.isSent && (!isRead || unanswered > 1)) || !mayTryAgain()) throw err;
      }
    }
  }

  /** Ends the call; without a reason it has ended by itself. */
  abort(reason?: unknown): void {
    this.#isOver = true;
    if (reason !== undefined) this.#exchange?.abort(reason instanceof Error ? reason : canceled());
  }

  #exchangeOnce({ method, body, header, isRead }: Sent): Promise<LeanAnswer> {
    const request = () => ({ path: methodPath(method), headers: this.#headers(header), body });
    return new Promise((resolve, reject) => {
      if (isRead) {
        const exchange = new HedgedExchange(this.#hedges, resolve, reject);
        this.#exchange = exchange;
        exchange.send(this.#pool, request);
        return;
      }
      const exchange = new LeanExchange(resolve, reject);
      this.#exchange = exchange;
      exchange.send(this.#pool, request());
    });
  }

  #headers(header: HeaderSource): string[] {
    const headers = [
      'content-type',
      'application/proto',
      'connect-protocol-version',
      '1',
      'connect-timeout-ms',
      String(timeLeftMs(this.#deadlineAt)),
      'authorization',
      this.#authorization,
    ];
    appendHeaders(headers, header);
    return headers;
  }
}

/** What is sent, and whether it may be sent twice. */
interface Sent {
  readonly method: DescMethodUnary;
  readonly body: Uint8Array;
  readonly header: HeaderSource;
  readonly isRead: boolean;
}

function serialize(method: DescMethodUnary, message: Message): Uint8Array {
  let body: Uint8Array;
  try {
    body = toBinary(method.input, message);
  } catch (err) {
    throw new ConnectError('the request is no valid message', Code.Internal, undefined, undefined, err);
  }
  if (body.byteLength > MESSAGE_BYTES_MAX) throw tooLarge('request');
  return body;
}

function appendHeaders(headers: string[], given: HeaderSource): void {
  if (given === undefined) return;
  const pairs = Array.isArray(given) || given instanceof Headers ? new Headers(given).entries() : Object.entries(given);
  for (const [name, value] of pairs) if (!RESERVED.has(name.toLowerCase())) headers.push(name, String(value));
}

/** Whether a service said, as it closed the connection, that it has not read what was sent on it; a call is never answered so. */
function isNotTaken({ status, headers }: LeanAnswer): boolean {
  return status === 408 && headers['content-type'] === undefined;
}
