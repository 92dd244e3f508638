import type { Server, Socket } from 'node:net';
import { canonicalIp, networkOf, type ProxyTrust } from './client-ip.ts';
import { Shares } from './shares.ts';

/** How many connections there may be, sockets and those that are yet to ask for one. */
export interface ConnectionLimits {
  readonly total: number;
  /** Of one network, unless it is a proxy's that is trusted: it stands for many clients. */
  readonly perNetwork: number;
  /** Nobody is trusted unless set. */
  readonly trust?: ProxyTrust;
}

/** Closes connections beyond the limits at once, so that one network, which may send nothing at all, does not keep others out. */
export function limitConnections(server: Server, { total, perNetwork, trust }: ConnectionLimits): void {
  server.maxConnections = total;
  // Those of proxies are counted by the server alone.
  const shares = new Shares({ total: Number.POSITIVE_INFINITY, perNetwork });
  server.on('connection', (socket: Socket) => {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined || trust?.(remoteAddress, 0)) return;
    const leave = shares.take(networkOf(canonicalIp(remoteAddress)));
    if (leave) socket.once('close', leave);
    else socket.destroy();
  });
}
