import type { IncomingMessage } from 'node:http';
import { REALTIME_PATH } from '@latchkey/contract/cloud-event';
import { commonErrors } from '@latchkey/kit/errors/errors';
import { findHeadProblem, hasBody } from '@latchkey/kit/http/request';
import { errors } from '../errors.ts';
import type { LastEvent } from '../hub/resume.ts';

/** The sub-protocol of the CloudEvents WebSocket binding: a text frame is one event in JSON. */
export const CLOUDEVENTS_PROTOCOL = 'cloudevents.json';

/** A socket key that is offered as a sub-protocol, as browsers can send no other header. */
const BEARER_PROTOCOL = /^bearer\.(.*)$/s;
const BEARER_HEADER = /^Bearer +(\S+)$/i;
const SOCKET_KEY = /^lk_sock_[0-9A-Za-z]{32}$/;
const LAST_EVENT = /^(?:([\x21-\x39\x3b-\x7e]{1,64}):)?(0|[1-9]\d{0,14})$/;

/** True if a request asks for a WebSocket. In HTTP/1.0 that must be ignored (RFC 9110, 7.8). */
export function isUpgrade({ headers, httpVersion }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket' && httpVersion === '1.1';
}

export function pathOf({ url = '' }: IncomingMessage): string {
  return url.split('?', 1)[0] as string;
}

/** Throws `request_malformed`, `route_not_found`, `method_not_allowed`. */
export function checkRequest(req: IncomingMessage): void {
  const problem = findHeadProblem(req);
  if (problem) throw commonErrors.request_malformed().withDetails(problem);
  if (hasBody(req)) throw commonErrors.request_malformed();
  if (pathOf(req) !== REALTIME_PATH) throw errors.route_not_found();
  if (req.method !== 'GET') throw errors.method_not_allowed();
}

/**
 * The socket key of an upgrade, from `Authorization` or a sub-protocol.
 *
 * @throws `socket_key_invalid`; `protocol_unknown` where cloudevents.json is not offered
 */
export function readSocketKey(req: IncomingMessage): string {
  const protocols = (req.headers['sec-websocket-protocol'] ?? '').split(',').flatMap((text) => text.trim() || []);
  const [key = '', ...others] = [
    ...(req.headersDistinct.authorization ?? []).map((header) => BEARER_HEADER.exec(header)?.[1] ?? ''),
    ...protocols.flatMap((name) => BEARER_PROTOCOL.exec(name)?.[1] ?? []),
  ];
  if (others.length > 0 || !SOCKET_KEY.test(key)) throw errors.socket_key_invalid();
  if (protocols.length > 0 && !protocols.includes(CLOUDEVENTS_PROTOCOL)) throw errors.protocol_unknown();
  return key;
}

/**
 * The event after which a client resumes: `Last-Event-ID`, or `lastEventId` in the query, as
 * `<sequence>` or `<epoch>:<sequence>`; without an epoch there, `epoch` in the query has it.
 * Undefined where it is missing, malformed or repeated.
 */
export function readLastEvent(req: IncomingMessage): LastEvent | undefined {
  const headers = req.headersDistinct['last-event-id'] ?? [];
  const query = new URLSearchParams((req.url ?? '').split('?', 2)[1] ?? '');
  const [text = '', ...others] = headers.length > 0 ? headers : query.getAll('lastEventId');
  const [, epoch, sequence] = LAST_EVENT.exec(text) ?? [];
  if (others.length > 0 || sequence === undefined) return undefined;
  return { epoch: epoch ?? query.get('epoch') ?? undefined, sequence: Number(sequence) };
}
