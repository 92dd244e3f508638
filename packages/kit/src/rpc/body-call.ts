import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { create, type DescMessage, type Message, type MessageInitShape, type MessageShape } from '@bufbuild/protobuf';
import { createAgent } from '../tls/service-agent.ts';
import type { ServiceTls } from '../tls/service-tls.ts';
import { inSpan } from '../tracing/tracer.ts';
import { BodyExchange } from './body-exchange.ts';
import { withinBounds } from './call-bounds.ts';
import { CallCounter } from './call-counter.ts';
import { bearer } from './credentials.ts';
import { readMessage } from './lean-answer.ts';
import { sendMessage } from './lean-response.ts';
import type { PlainRoute } from './plain-route.ts';
import { REQUEST_ID_HEADER, TRACEPARENT_HEADER } from './route.ts';

/** The serving end of calls whose request is a plain body. */
export interface BodyRouteOptions<O extends DescMessage> {
  /** The whole path. */
  readonly path: string;
  readonly output: O;
  /** Reads the body and answers. The body has ended properly only if the request is `complete` at its end. */
  handle(req: IncomingMessage, requestId: string): Promise<MessageInitShape<O>>;
}

/**
 * A call whose request is a plain body, `PUT`, and whose answer is that of a unary call: a message in binary, or an error in JSON. Messages in a
 * stream cost twice the CPU, and a stream that was cut off may look as if it had ended (architecture 4).
 */
export function bodyRoute<O extends DescMessage>({ path, output, handle }: BodyRouteOptions<O>): PlainRoute {
  return {
    method: 'PUT',
    path,
    needsCredential: true,
    async handle(req, res, requestId) {
      const answer = await handle(req, requestId);
      sendMessage(res, output, '$typeName' in answer ? (answer as Message) : create(output, answer));
    },
  };
}

/** One call to send. */
export interface BodyCall {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Read as fast as the service takes it. It is not destroyed, also when it is not read to its end. */
  readonly body: Readable;
  /** Size of the body in bytes, where it is known. */
  readonly byteSize: number | undefined;
  readonly requestId: string;
  readonly signal?: AbortSignal | undefined;
  /** Time until the deadline, in milliseconds. */
  readonly timeoutMs: number;
}

/** The calling end. */
export interface BodyClient {
  /**
   * Sends a body and waits for the answer, which may come before all is sent. Nothing is tried twice.
   *
   * @throws ConnectError what the service answered; `unavailable` where it can't be reached or goes away; `canceled` where the body breaks off, which
   *   the service then sees as well
   */
  send<O extends DescMessage>(call: BodyCall, output: O): Promise<MessageShape<O>>;
  /** Resolves once the calls under way have ended. */
  close(): Promise<void>;
}

/**
 * A client for {@link bodyRoute}s of a service.
 *
 * @param baseUrl `http://host:port` of the service's HTTP/1.1 port, or `https:` with TLS
 * @param credential service credential to present
 * @param tls what connections are secured with; required where the service has TLS
 */
export function createBodyClient(baseUrl: string, credential: string, tls?: ServiceTls): BodyClient {
  // A connection that waits for its next use may be closed under it, and a body can't be sent again.
  const agent = createAgent(tls);
  const calls = new CallCounter();
  return {
    send: (call, output) =>
      inSpan({ name: `PUT ${call.path}`, kind: 'client', attributes: { 'http.request.method': 'PUT' } }, async (span) => {
        const headers = {
          ...call.headers,
          authorization: bearer(credential),
          [REQUEST_ID_HEADER]: call.requestId,
          ...(span && { [TRACEPARENT_HEADER]: span.traceparent }),
        };
        const exchange = new BodyExchange(call.body, call.byteSize);
        const bounds = { signal: call.signal, timeoutMs: call.timeoutMs };
        calls.enter();
        try {
          const url = new URL(call.path, baseUrl);
          return readMessage(output, await withinBounds(bounds, exchange, () => exchange.send(url, { agent, headers })));
        } finally {
          calls.leave();
        }
      }),
    close: () => calls.idle(),
  };
}
