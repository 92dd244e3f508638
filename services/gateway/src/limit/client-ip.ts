import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';

const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** The client's address. What a trusted proxy forwards that is no address counts as the proxy's own. */
export function clientIpOf(request: FastifyRequest): string {
  const ip = isIP(request.ip) === 0 ? (request.raw.socket.remoteAddress ?? '') : request.ip;
  return MAPPED_IPV4.exec(ip)?.[1] ?? ip;
}

/**
 * Whom a limit per address counts: an IPv4 address, or the /64 of an IPv6 one, since whoever has one address of it has
 * them all.
 */
export function networkOf(ip: string): string {
  if (!ip.includes(':')) return ip;
  const [head = '', tail] = ip.split('::');
  const groups = head === '' ? [] : head.split(':');
  // An IPv4 address at the end takes the place of two groups.
  const after = tail === undefined || tail === '' ? 0 : tail.split(':').length + (tail.includes('.') ? 1 : 0);
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - after);
  const full = [...groups, ...Array<string>(zeros).fill('0'), ...(tail ? tail.split(':') : [])];
  return `${full
    .slice(0, 4)
    .map((group) => Number.parseInt(group || '0', 16).toString(16))
    .join(':')}::/64`;
}
