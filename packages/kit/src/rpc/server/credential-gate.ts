import { constants } from 'node:http2';
import { Code, ConnectError } from '@connectrpc/connect';
import { Health } from '@latchkey/proto/health/v1/health_pb';
import { canonicalIp, networkOf } from '../../http/client-ip.ts';
import { ConcurrencyLimit } from '../../http/concurrency-limit.ts';
import type { Logger } from '../../log/logger.ts';
import { createCredentialCheck, unauthenticated } from '../credentials.ts';
import { credentialRejections } from '../observe.ts';
import { methodPath, type RpcRoute } from '../route.ts';
import { createRejectionLog } from './rejection-log.ts';
import { type Request, type Response, rejectUnknownMethod, sendRejection } from './send-response.ts';

/** Largest message of a call without a credential, in bytes: it contains the name of a service. */
export const OPEN_MESSAGE_BYTES_MAX = 4 * 1024;

const OPEN_CALLS_MAX = 100;
const OPEN_CALLS_PER_NETWORK = 20;

const HEALTH_CHECK = methodPath(Health.method.check);
const PROBES = new Set(['/healthz', '/readyz']);

/**
 * Lets requests through. Only `Health/Check` and the probes need no service credential.
 *
 * @param openCallMs longest time for a call without a credential, in milliseconds
 */
export function createCredentialGate(
  credentials: readonly string[],
  routes: readonly RpcRoute[],
  logger: Logger,
  openCallMs: number,
) {
  const isValid = createCredentialCheck(credentials);
  const methods = new Set(routes.flatMap(({ service }) => service.methods.map(methodPath)));
  const logRejection = createRejectionLog(logger, 'calls without a valid service credential are rejected');
  const openCalls = new ConcurrencyLimit(OPEN_CALLS_MAX);
  const openCallsOfNetwork = new ConcurrencyLimit(OPEN_CALLS_PER_NETWORK);
  const hasCredential = ({ headers, socket }: Request) => {
    if (isValid(headers.authorization)) return true;
    credentialRejections.add(1);
    logRejection(socket?.remoteAddress);
    return false;
  };
  const authorizeOpen = (req: Request, res: Response) => {
    const network = networkOf(canonicalIp(req.socket?.remoteAddress));
    const release = openCalls.isReached() ? undefined : openCallsOfNetwork.acquire(network);
    if (!release) {
      sendRejection(req, res, new ConnectError('too many calls without a credential', Code.ResourceExhausted));
      return false;
    }
    const releaseTotal = openCalls.acquire();
    const timer = setTimeout(() => cutOff(req), openCallMs);
    res.once('close', () => {
      clearTimeout(timer);
      release();
      releaseTotal?.();
    });
    return true;
  };
  return {
    /** True if a request presents a valid credential; one that does not is counted and logged. */
    hasCredential,
    /** True if a request may go on to the router; otherwise it has been answered. */
    authorize(req: Request, res: Response): boolean {
      // Routers also accept other spellings of a path, which need a credential too.
      const path = req.url?.split('?', 1)[0] as string;
      if (PROBES.has(path)) return true;
      if (path === HEALTH_CHECK && req.headers.authorization === undefined) return authorizeOpen(req, res);
      if (methods.has(path) ? hasCredential(req) : isValid(req.headers.authorization)) return true;
      if (methods.has(path)) sendRejection(req, res, unauthenticated());
      else rejectUnknownMethod(req, res);
      return false;
    },
  };
}

function cutOff(req: Request): void {
  if ('stream' in req) req.stream.close(constants.NGHTTP2_CANCEL);
  else req.socket.destroy();
}
