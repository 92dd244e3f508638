import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { fastifyConnectPlugin } from '@connectrpc/connect-fastify';
import { type FastifyInstance, fastify } from 'fastify';
import { LingeringResponse } from '../http/lingering-response.ts';
import type { ReadinessCheck } from './health.ts';
import { DEADLINE_MS_MAX } from './route.ts';

/** Longer than a client of ours keeps an idle connection, so that a client never sends on one that is being closed. */
const KEEP_ALIVE_MS = 65_000;

/** How often connections that have become idle are closed while the server stops, in milliseconds. */
const IDLE_CHECK_MS = 20;

/** A handler that answers true when it took the request. */
export type FrontHandler = (req: IncomingMessage, res: ServerResponse) => boolean;

/** Settings of {@link buildHttpServer}. */
export interface HttpListenerOptions {
  readonly checkReady: ReadinessCheck;
  /** Longest time that a whole request may take to arrive, in milliseconds. */
  readonly requestTimeoutMs: number;
}

/**
 * Builds the HTTP/1.1 server: a handler of ours in front, then Fastify with Connect and the probes `/healthz` and `/readyz`. Fastify does
 * not set time-outs on a server that it did not make.
 */
export async function buildHttpServer(
  front: FrontHandler,
  connect: Parameters<typeof fastifyConnectPlugin>[1],
  options: HttpListenerOptions,
): Promise<FastifyInstance> {
  const { checkReady, requestTimeoutMs } = options;
  const http = {
    ServerResponse: LingeringResponse,
    requestTimeout: requestTimeoutMs,
    headersTimeout: DEADLINE_MS_MAX,
    keepAliveTimeout: KEEP_ALIVE_MS,
  };
  let stopping = false;
  const app = fastify({
    return503OnClosing: false,
    serverFactory: (handler) =>
      createServer(http, (req, res) => {
        if (stopping) res.shouldKeepAlive = false;
        if (!front(req, res)) handler(req, res);
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
