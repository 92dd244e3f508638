import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import proxyAddr from '@fastify/proxy-addr';

const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** Whether what an address says of its own client is believed. */
export type ProxyTrust = (address: string, hop: number) => boolean;

/** Trust in the proxies of a list as {@link trustedProxiesSetting} gives it; in nobody, where it is empty. */
export function trustProxies(list: readonly string[]): ProxyTrust {
  return proxyAddr.compile([...list]);
}

/** The client's address by `X-Forwarded-For`, as far as those who forwarded it are trusted. */
export function clientIp(req: IncomingMessage, trust: ProxyTrust): string {
  return canonicalIp(proxyAddr(req, trust), req.socket.remoteAddress);
}

/** The address that was forwarded, or that of the proxy where what it forwarded is none; an IPv4 address always as such. */
export function canonicalIp(forwarded: string | undefined, remoteAddress = ''): string {
  const ip = forwarded === undefined || isIP(forwarded) === 0 ? remoteAddress : forwarded;
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
