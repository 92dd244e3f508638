import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** A server of Node's for one test, on a port of its own. */
export async function startHttpServer(listener: RequestListener, prepare: (server: Server) => unknown = () => undefined) {
  const server = createServer({ requireHostHeader: false }, listener);
  prepare(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const connections = () => new Promise<number>((resolve) => server.getConnections((_err, count) => resolve(count)));
  return { port, connections };
}
