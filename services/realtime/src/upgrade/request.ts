import type { IncomingMessage } from 'node:http';
import { commonErrors } from '@latchkey/kit/errors';
import { hasBody } from '@latchkey/kit/http/lingering-response';
import { findHeadProblem } from '@latchkey/kit/http/request-head';
import { errors } from '../errors.ts';
import { REALTIME_PATH } from '../protocol.ts';

/** Whether a request asks for what is spoken here. Any other protocol may be left alone, and one asked for in HTTP/1.0 must be (RFC 9110, 7.8). */
export function isUpgrade({ headers, httpVersion }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket' && httpVersion === '1.1';
}

/** Throws `request_malformed`, `route_not_found`, `method_not_allowed` for what is no request to the endpoint, whoever makes it. */
export function checkRequest(req: IncomingMessage): void {
  const problem = findHeadProblem(req);
  if (problem) throw commonErrors.request_malformed().withDetails(problem);
  if (hasBody(req)) throw commonErrors.request_malformed();
  if (pathOf(req) !== REALTIME_PATH) throw errors.route_not_found();
  if (req.method !== 'GET') throw errors.method_not_allowed();
}

/** The path that is asked for. */
export function pathOf({ url = '' }: IncomingMessage): string {
  return url.split('?', 1)[0] as string;
}
