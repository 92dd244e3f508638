import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { canonicalIp, networkOf, type ProxyTrust } from '@latchkey/kit/http/client-ip';

/** How many connections there may be, sockets and those that are yet to ask for one. */
export interface ConnectionLimits {
  readonly total: number;
  /** Of one network, unless it is a proxy's that is trusted: it stands for many clients. */
  readonly perNetwork: number;
  readonly trust: ProxyTrust;
}

/** Closes connections beyond the limits at once, so that one network, which may send nothing at all, does not keep others out. */
export function limitConnections(server: Server, { total, perNetwork, trust }: ConnectionLimits): void {
  server.maxConnections = total;
  const counts = new Map<string, number>();
  server.on('connection', (socket: Socket) => {
    const { remoteAddress } = socket;
    if (remoteAddress === undefined || trust(remoteAddress, 0)) return;
    const network = networkOf(canonicalIp(remoteAddress));
    const count = counts.get(network) ?? 0;
    if (count >= perNetwork) {
      socket.destroy();
      return;
    }
    counts.set(network, count + 1);
    socket.once('close', () => {
      const left = (counts.get(network) ?? 0) - 1;
      if (left > 0) counts.set(network, left);
      else counts.delete(network);
    });
  });
}
