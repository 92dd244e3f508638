import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ConnectError } from '@connectrpc/connect';
import { requestIdOf } from '../http/request-id.ts';
import type { Logger } from '../logger.ts';
import { type CallFacts, refuse } from './bound-method.ts';
import { canceled } from './call-bounds.ts';
import type { CallCounter } from './call-counter.ts';
import { type CredentialCheck, unauthenticated } from './credentials.ts';
import type { FrontHandler } from './http-listener.ts';
import { sendError } from './lean-response.ts';

/** A route of plain HTTP beside the RPC of a service, for bodies that are no messages (architecture 4). */
export interface PlainRoute {
  readonly method: string;
  /** Path, or what it begins with where this ends in `/`. */
  readonly path: string;
  /** Whether only services of the deployment may call it. */
  readonly needsCredential: boolean;
  /**
   * Answers the request and resolves when that is done. How long the body may take is its own concern. What it throws before it has answered is
   * answered as the error of a unary call, and what it throws after cuts the answer off. `isService`: the caller showed the credential.
   */
  handle(req: IncomingMessage, res: ServerResponse, requestId: string, isService: boolean): Promise<void>;
}

/** What answers plain routes. */
export interface PlainHandlerOptions {
  readonly routes: readonly PlainRoute[];
  readonly checkCredential: CredentialCheck;
  readonly logger: Logger;
  readonly calls: CallCounter;
}

/** A listener that answers plain routes, and false for what is none. */
export function createPlainHandler(options: PlainHandlerOptions): FrontHandler {
  return (req, res) => {
    const route = findRoute(options.routes, req);
    if (!route) return false;
    const { headers, socket } = req;
    // A client of an open route that shows no credential is no service with a wrong one.
    const isChecked = route.needsCredential || headers.authorization !== undefined;
    const isService = isChecked && options.checkCredential(headers.authorization, socket.remoteAddress);
    if (route.needsCredential && !isService) sendError(res, unauthenticated());
    else void answer(options, { req, res, isService }, route);
    return true;
  };
}

function findRoute(routes: readonly PlainRoute[], { method, url = '' }: IncomingMessage): PlainRoute | undefined {
  if (routes.length === 0) return undefined;
  const path = url.split('?', 1)[0] as string;
  return routes.find(
    (route) => route.method === method && (route.path.endsWith('/') ? path.startsWith(route.path) : path === route.path),
  );
}

interface PlainRequest {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly isService: boolean;
}

async function answer(options: PlainHandlerOptions, { req, res, isService }: PlainRequest, route: PlainRoute): Promise<void> {
  const { logger, calls } = options;
  const requestId = requestIdOf(req);
  const startedAt = performance.now();
  // What follows the fixed part of a path may be a secret.
  const facts = (): CallFacts => ({
    requestId,
    rpc: `${route.method} ${route.path}`,
    ms: Math.round((performance.now() - startedAt) * 1000) / 1000,
  });
  const gone = new AbortController();
  try {
    calls.enter();
  } catch (err) {
    sendError(res, err as ConnectError);
    return;
  }
  res.once('close', () => {
    calls.leave();
    if (!res.writableFinished) gone.abort(canceled());
  });
  // An error that nobody listens for would end the process.
  for (const stream of [req, res]) stream.on('error', () => undefined);
  try {
    await route.handle(req, res, requestId, isService);
    if (!res.headersSent && !res.destroyed) throw new Error('The route has not answered');
    logger.info(facts(), 'rpc');
  } catch (err) {
    const error = refuse(err, gone, logger, facts());
    if (res.headersSent) res.destroy();
    else sendError(res, error);
  }
}
