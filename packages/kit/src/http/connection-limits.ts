import type { Server, Socket } from 'node:net';
import { canonicalIp, networkOf, type ProxyTrust } from './client-ip.ts';
import { Shares } from './shares.ts';

/** Limits of the connections of a server. */
export interface ConnectionLimits {
  readonly total: number;
  /** Of one network, trusted proxies aside: they stand for many clients. */
  readonly perNetwork: number;
  /** None unless set. */
  readonly trust?: ProxyTrust;
}

/** Closes connections beyond the limits, so that one network, though it sends nothing, does not keep others out. */
export function limitConnections(server: Server, { total, perNetwork, trust }: ConnectionLimits): void {
  server.maxConnections = total;
  // The server counts those of proxies.
  const shares = new Shares({ total: Number.POSITIVE_INFINITY, perNetwork });
  server.on('connection', (socket: Socket) => {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined || trust?.(remoteAddress, 0)) return;
    const leave = shares.take(networkOf(canonicalIp(remoteAddress)));
    if (leave) socket.once('close', leave);
    else socket.destroy();
  });
}
