import { canonicalIp } from '@latchkey/kit/http/client-ip';
import type { FastifyRequest } from 'fastify';

/** The client's address. What a trusted proxy forwards that is no address counts as the proxy's own. */
export function clientIpOf(request: FastifyRequest): string {
  return canonicalIp(request.ip, request.raw.socket.remoteAddress);
}
