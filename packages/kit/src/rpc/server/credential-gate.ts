import type { IncomingMessage, ServerResponse } from 'node:http';
import { constants, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import type { DescService } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { Health } from '@latchkey/proto/health/v1/health_pb';
import { canonicalIp, networkOf } from '../../http/client-ip.ts';
import { ConcurrencyLimit } from '../../http/concurrency-limit.ts';
import type { Logger } from '../../log/logger.ts';
import { createCredentialCheck, unauthenticated } from '../credentials.ts';
import { credentialRejections } from '../observe.ts';
import { methodPath } from '../route.ts';
import { createRejectionLog } from './rejection-log.ts';
import { rejectUnknownMethod, sendRejection } from './response.ts';

/** Largest message of a call without a credential, in bytes: it holds the name of a service. */
export const OPEN_MESSAGE_BYTES_MAX = 4 * 1024;

/** Concurrent calls without a credential. */
const OPEN_CALLS_MAX = 100;
const OPEN_CALLS_PER_NETWORK = 20;

const HEALTH_CHECK = methodPath(Health.method.check);
const PROBES = new Set(['/healthz', '/readyz']);

type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

/** Settings of {@link createCredentialGate}. */
export interface CredentialGateOptions {
  readonly credentials: readonly string[];
  /** Services whose methods need a credential. */
  readonly services: readonly DescService[];
  readonly logger: Logger;
  /** Longest time for a call without a credential, in milliseconds. */
  readonly openCallMs: number;
}

/** Only `Health/Check` and the probes need no service credential (decisions 11). */
export interface CredentialGate {
  /** Whether a request presents a valid credential; one that does not is counted and logged. */
  hasCredential(req: Request): boolean;
  /** Whether a request may go on to the router; otherwise it has been answered. */
  admit(req: Request, res: Response): boolean;
}

export function createCredentialGate({ credentials, services, logger, openCallMs }: CredentialGateOptions): CredentialGate {
  const isValid = createCredentialCheck(credentials);
  const methods = new Set(services.flatMap((service) => service.methods.map(methodPath)));
  const logRejection = createRejectionLog(logger, 'calls without a valid service credential are refused');
  const openCalls = new ConcurrencyLimit(OPEN_CALLS_MAX);
  const openCallsOfNetwork = new ConcurrencyLimit(OPEN_CALLS_PER_NETWORK);
  const hasCredential = ({ headers, socket }: Request) => {
    if (isValid(headers.authorization)) return true;
    credentialRejections.add(1);
    logRejection(socket?.remoteAddress);
    return false;
  };
  const admitOpen = (req: Request, res: Response) => {
    const releaseNetwork = openCallsOfNetwork.acquire(networkOf(canonicalIp(req.socket?.remoteAddress)));
    const release = releaseNetwork && openCalls.acquire();
    if (!release) {
      releaseNetwork?.();
      sendRejection(req, res, new ConnectError('too many calls without a credential', Code.ResourceExhausted));
      return false;
    }
    const timer = setTimeout(() => cutOff(req), openCallMs);
    res.once('close', () => {
      clearTimeout(timer);
      release();
      releaseNetwork();
    });
    return true;
  };
  return {
    hasCredential,
    // Routers also accept other spellings of a path. Without a credential, none but these reach them.
    admit(req, res) {
      const path = req.url?.split('?', 1)[0] as string;
      if (PROBES.has(path)) return true;
      if (path === HEALTH_CHECK && req.headers.authorization === undefined) return admitOpen(req, res);
      if (!methods.has(path)) {
        if (isValid(req.headers.authorization)) return true;
        rejectUnknownMethod(req, res);
        return false;
      }
      if (hasCredential(req)) return true;
      sendRejection(req, res, unauthenticated());
      return false;
    },
  };
}

function cutOff(req: Request): void {
  if ('stream' in req) req.stream.close(constants.NGHTTP2_CANCEL);
  else req.socket.destroy();
}
