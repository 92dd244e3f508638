import type { IncomingMessage } from 'node:http';
import { BEARER_PROTOCOL_PREFIX } from '../protocol.ts';

const BEARER_HEADER = /^Bearer +(\S+)$/i;
const SOCKET_KEY = /^lk_sock_[0-9A-Za-z]{32}$/;

/** The sub-protocols that a client offers, in its order. */
export function offeredProtocols(req: IncomingMessage): string[] {
  const header = req.headers['sec-websocket-protocol'] ?? '';
  return header.split(',').flatMap((text) => text.trim() || []);
}

/**
 * The socket key that an upgrade presents, in `Authorization` or, since a browser can't set that, as a sub-protocol (decisions 10). Undefined where there
 * is none, where there are two, and for text that can't be one.
 */
export function readSocketKey(req: IncomingMessage): string | undefined {
  const headers = req.headersDistinct.authorization ?? [];
  const protocols = offeredProtocols(req).filter((name) => name.startsWith(BEARER_PROTOCOL_PREFIX));
  const [key, ...others] = [
    ...headers.map((header) => BEARER_HEADER.exec(header)?.[1] ?? ''),
    ...protocols.map((name) => name.slice(BEARER_PROTOCOL_PREFIX.length)),
  ];
  return key !== undefined && others.length === 0 && SOCKET_KEY.test(key) ? key : undefined;
}
