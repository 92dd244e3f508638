import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import proxyAddr from '@fastify/proxy-addr';
import ipaddr from 'ipaddr.js';

/** Some proxies, such as Azure's Application Gateway, forward the port too. */
const WITH_PORT = /^(?:([\d.]+)|\[([\da-f:.]+)\]):\d+$/i;
const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** True if the `X-Forwarded-For` of an address is trusted. */
export type ProxyTrust = (address: string, hop: number) => boolean;

/** Trust in the proxies of a list as {@link trustedProxiesSetting} gives it. */
export function trustProxies(list: readonly string[]): ProxyTrust {
  return proxyAddr.compile([...list]);
}

/** The client's address by `X-Forwarded-For`, as far as its proxies are trusted. */
export function clientIp(req: IncomingMessage, trust: ProxyTrust): string {
  return canonicalIp(proxyAddr(req, trust), req.socket.remoteAddress);
}

/** The forwarded address, or the proxy's own if that is invalid; IPv4-mapped addresses as IPv4. */
export function canonicalIp(forwarded: string | undefined, remoteAddress = ''): string {
  const [, ipv4, ipv6] = WITH_PORT.exec(forwarded ?? '') ?? [];
  const given = ipv4 ?? ipv6 ?? forwarded ?? '';
  const ip = isIP(given) === 0 ? remoteAddress : given;
  return MAPPED_IPV4.exec(ip)?.[1] ?? ip;
}

/**
 * The unit of limits per address: an IPv4 address, or the /64 of an IPv6 one.
 *
 * @param ip valid, as {@link canonicalIp} gives it
 */
export function networkOf(ip: string): string {
  if (!ip.includes(':')) return ip;
  // An interface at the end (RFC 4007) may have characters that the parser rejects.
  const { parts } = ipaddr.IPv6.parse(ip.replace(/%.*/s, ''));
  const groups = parts.slice(0, 4).map((group) => group.toString(16));
  return `${groups.join(':')}::/64`;
}
