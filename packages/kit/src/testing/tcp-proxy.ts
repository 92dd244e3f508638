import { connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { startTcpServer } from './servers.ts';

/** A server's address behind a proxy that can stop forwarding, as a frozen server or a cut network does. */
export async function startProxy(target: string) {
  const { hostname, port: targetPort } = new URL(target);
  const sockets = new Set<Socket>();
  let isFrozen = false;
  let accepted = 0;
  const { port } = await startTcpServer((client) => {
    accepted += 1;
    const server = connect(Number(targetPort), hostname);
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(from);
      from.on('data', (chunk) => void to.write(chunk));
      from.on('error', () => to.destroy());
      from.on('close', () => {
        to.destroy();
        sockets.delete(from);
      });
      if (isFrozen) from.pause();
    }
  });
  const reset = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  const freeze = () => {
    isFrozen = true;
    for (const socket of sockets) socket.pause();
  };
  onTestFinished(reset);
  const url = new URL(target);
  url.hostname = '127.0.0.1';
  url.port = String(port);
  return {
    url: url.href,
    /** Holds back everything from now on, on all connections and those to come. */
    freeze,
    /** Forwards again, what was held back first. */
    thaw() {
      isFrozen = false;
      for (const socket of sockets) socket.resume();
    },
    /** Forwards nothing more on the connections there are, and everything on those to come. */
    abandon() {
      freeze();
      isFrozen = false;
    },
    /** Cuts every connection. */
    reset,
    accepted: () => accepted,
  };
}
