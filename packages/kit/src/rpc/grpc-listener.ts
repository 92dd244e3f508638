import { createServer, type Http2ServerRequest, type Http2ServerResponse, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';

/** A cleartext HTTP/2 server that listens. */
export interface GrpcListener {
  readonly port: number;
  /** Refuses new connections and calls; resolves once the calls under way have ended. */
  close(): Promise<void>;
  /** Ends what is still open. */
  destroy(): void;
}

/**
 * Listens for gRPC over cleartext HTTP/2. Node ends no HTTP/2 session when its server closes, so an idle client would hold it open
 * for ever; this one ends them.
 */
export async function listenForGrpc(
  handler: (req: Http2ServerRequest, res: Http2ServerResponse) => void,
  host: string,
  port: number,
): Promise<GrpcListener> {
  const server = createServer(handler);
  const sessions = new Set<ServerHttp2Session>();
  server.on('session', (session) => {
    sessions.add(session);
    session.on('error', () => session.destroy());
    session.on('close', () => sessions.delete(session));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const session of sessions) session.close();
      }),
    destroy() {
      for (const session of sessions) session.destroy();
    },
  };
}
