import type { IncomingMessage, ServerResponse } from 'node:http';
import { constants, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import {
  Code,
  ConnectError,
  type ContextValues,
  createContextKey,
  createContextValues,
  type Interceptor,
} from '@connectrpc/connect';
import { canonicalIp, networkOf } from '../http/client-ip.ts';
import { Shares } from '../http/shares.ts';
import { type CredentialCheck, isOpenPath, REMOTE_ADDRESS } from './credentials.ts';
import { sendRefusal } from './refusal.ts';

/** Largest message of a call that anyone may make, in bytes: a name is all that is asked for. */
export const OPEN_MESSAGE_BYTES_MAX = 4 * 1024;

/** Calls at once that show no credential. They are small and soon over; those who watch are counted elsewhere. */
const PLACES = { total: 100, perNetwork: 20 };

/** How long the message of such a call may take to come whole, in milliseconds. */
const MESSAGE_MS_MAX = 5_000;

type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

/** A call that anyone may make, from someone who showed no credential. */
interface OpenCall {
  /** Who makes it, as `networkOf` names them. */
  readonly network: string;
  /** Its message has come whole; what goes on from then on for as long as the caller likes gives its place back. */
  arrived(isEndless: boolean): void;
}

const OPEN_CALL = createContextKey<OpenCall | undefined>(undefined);

/** Whom the places of watchers are counted for; all who are known share one name. */
export function watcherNetwork(values: ContextValues): string {
  return values.get(OPEN_CALL)?.network ?? '';
}

/**
 * Bounds calls of health and reflection, which answer anyone: how many there are at once, those of one network among them, and how long their messages
 * take. Who shows a credential is bounded as in every other call.
 */
export class OpenCalls {
  readonly #isKnown: CredentialCheck;
  readonly #messageMsMax: number;
  readonly #places = new Shares(PLACES);
  readonly #calls = new WeakMap<Request, OpenCall>();

  constructor(isKnown: CredentialCheck, messageMsMax = MESSAGE_MS_MAX) {
    this.#isKnown = isKnown;
    this.#messageMsMax = messageMsMax;
  }

  /** Whether a request may go on; one that may not is answered. */
  admit(req: Request, res: Response): boolean {
    if (!isOpenPath(req.url) || this.#isKnown(req.headers.authorization)) return true;
    const network = networkOf(canonicalIp(req.socket?.remoteAddress));
    const leave = this.#places.take(network);
    if (!leave) {
      sendRefusal(req, res, tooMany());
      return false;
    }
    const timer = setTimeout(() => cutOff(req), this.#messageMsMax);
    res.once('close', () => {
      clearTimeout(timer);
      leave();
    });
    const arrived = (isEndless: boolean) => {
      clearTimeout(timer);
      if (isEndless) leave();
    };
    this.#calls.set(req, { network, arrived });
    return true;
  }

  /** What the gate and the handler of a request that was admitted are told of it. */
  valuesOf(req: Request): ContextValues {
    return createContextValues().set(OPEN_CALL, this.#calls.get(req)).set(REMOTE_ADDRESS, req.socket?.remoteAddress);
  }
}

/** Notes when the message of a call has come whole: of a stream of requests the first one, as its client may have nothing more to ask for a while. */
export const noteArrival: Interceptor = (next) => (req) => {
  const call = req.contextValues.get(OPEN_CALL);
  if (!call) return next(req);
  if (req.stream) return next({ ...req, message: noting(req.message, call, req.method.methodKind === 'bidi_streaming') });
  call.arrived(false);
  return next(req);
};

async function* noting<T>(messages: AsyncIterable<T>, call: OpenCall, goesOn: boolean): AsyncGenerator<T> {
  for await (const message of messages) {
    if (goesOn) call.arrived(false);
    yield message;
  }
  call.arrived(!goesOn);
}

const tooMany = () => new ConnectError('too many calls without a credential are under way', Code.ResourceExhausted);

function cutOff(req: Request): void {
  if ('stream' in req) req.stream.close(constants.NGHTTP2_CANCEL);
  else req.socket.destroy();
}
