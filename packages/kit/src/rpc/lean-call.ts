import { type DescMethodUnary, type Message, toBinary } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError } from '@connectrpc/connect';
import type { Pool } from 'undici';
import { methodPath } from './bound-method.ts';
import { type Abortable, canceled, timeLeftMs } from './call-bounds.ts';
import { type LeanAnswer, LeanExchange } from './lean-exchange.ts';
import { tooLarge } from './lean-request.ts';
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

/** A unary call over a pool: one exchange, or two where a read got no answer. */
export class LeanCall implements Abortable {
  readonly #pool: Pool;
  readonly #authorization: string;
  readonly #deadlineAt: number;
  #exchange: LeanExchange | undefined;
  #isOver = false;

  /** @param timeoutMs time until the deadline of which the service is told, in milliseconds */
  constructor(pool: Pool, authorization: string, timeoutMs: number) {
    this.#pool = pool;
    this.#authorization = authorization;
    this.#deadlineAt = performance.now() + timeoutMs;
  }

  /**
   * Sends the call. A method without side effects that got no answer at all is tried once more; no other is.
   *
   * @throws ConnectError
   */
  async send(method: DescMethodUnary, message: Message, header: HeaderSource): Promise<LeanAnswer> {
    const body = serialize(method, message);
    try {
      return await this.#exchangeOnce(method, body, header);
    } catch (err) {
      const isRead = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
      const isUnanswered = err instanceof ConnectError && err.code === Code.Unavailable && !this.#exchange?.isAnswered;
      if (!isRead || !isUnanswered || this.#isOver) throw err;
      return await this.#exchangeOnce(method, body, header);
    }
  }

  /** Ends the call; without a reason it has ended by itself. */
  abort(reason?: unknown): void {
    this.#isOver = true;
    if (reason !== undefined) this.#exchange?.abort(reason instanceof Error ? reason : canceled());
  }

  #exchangeOnce(method: DescMethodUnary, body: Uint8Array, header: HeaderSource): Promise<LeanAnswer> {
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
    return new Promise((resolve, reject) => {
      this.#exchange = new LeanExchange(resolve, reject);
      this.#exchange.send(this.#pool, { path: methodPath(method), headers, body });
    });
  }
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
