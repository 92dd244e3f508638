import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { fastifyConnectPlugin } from '@connectrpc/connect-fastify';
import { type FastifyInstance, fastify } from 'fastify';
import type { ReadinessCheck } from './health.ts';
import { DEADLINE_MS_MAX } from './route.ts';

/** Longer than a client of ours keeps an idle connection, so that a client never sends on one that is being closed. */
const KEEP_ALIVE_MS = 65_000;

/** How often connections that have become idle are closed while the server stops, in milliseconds. */
const IDLE_CHECK_MS = 20;

/**
 * Discards what connect-node did not read of a request that it refused, such as a gRPC-Web message beyond the limit. It destroys
 * such a request but not its connection, on which nothing would ever be read again. Node does the same for a request
 * that nobody touched.
 */
function drain(req: IncomingMessage, connection: Socket): void {
  (req as unknown as { _dump(): void })._dump();
  connection.resume();
}

/** A handler that answers true when it took the request. */
export type FrontHandler = (req: IncomingMessage, res: ServerResponse) => boolean;

/**
 * Builds the HTTP/1.1 server: a handler of ours in front, then Fastify with Connect and the probes `/healthz` and `/readyz`. Fastify does
 * not set time-outs on a server that it did not make.
 */
export async function buildHttpServer(
  front: FrontHandler,
  connect: Parameters<typeof fastifyConnectPlugin>[1],
  checkReady: ReadinessCheck,
): Promise<FastifyInstance> {
  let stopping = false;
  const app = fastify({
    return503OnClosing: false,
    serverFactory: (handler) =>
      createServer({ requestTimeout: DEADLINE_MS_MAX, keepAliveTimeout: KEEP_ALIVE_MS }, (req, res) => {
        if (stopping) res.shouldKeepAlive = false;
        if (front(req, res)) return;
        const { socket } = req;
        res.once('finish', () => req.complete || drain(req, socket));
        handler(req, res);
      }),
  });
  await app.register(fastifyConnectPlugin, connect);
  app.get('/healthz', () => ({ status: 'ok' }));
  app.get('/readyz', async (_req, reply) => {
    const ready = await checkReady().then(
      () => true,
      () => false,
    );
    return reply.code(ready ? 200 : 503).send({ status: ready ? 'ready' : 'not ready' });
  });
  let sweep: NodeJS.Timeout | undefined;
  app.addHook('preClose', async () => {
    stopping = true;
    sweep = setInterval(() => app.server.closeIdleConnections(), IDLE_CHECK_MS);
  });
  app.addHook('onClose', async () => clearInterval(sweep));
  return app;
}
