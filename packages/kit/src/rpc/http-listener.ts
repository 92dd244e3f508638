import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { fastifyConnectPlugin } from '@connectrpc/connect-fastify';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { limitConnections } from '../http/connection-limits.ts';
import { trackConnections, whenAnswered } from '../http/connections.ts';
import { closeIdle, lingerOnClose } from '../http/drain.ts';
import { LingeringResponse } from '../http/lingering-response.ts';
import { endWithTrust, followChanges, noteRefusedPeers, serverTlsOptions } from '../tls/server-tls.ts';
import type { ServiceTls } from '../tls/service-tls.ts';
import type { ReadinessCheck } from './health.ts';
import { refuseUnknown } from './refusal.ts';
import type { NoteRefusal } from './refusal-log.ts';
import { DEADLINE_MS_MAX } from './route.ts';

/** Longer than a client of ours keeps an idle connection, so that a client never sends on one that is being closed. */
const KEEP_ALIVE_MS = 65_000;

/**
 * Told on a connection that is closed while no request is under way: if one is on its way by then, it has not been read, and may be sent again
 * whatever it asks for (RFC 9110, 15.5.9).
 */
const NOT_TAKEN = 'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';

const TIMEOUT_CHECK_INTERVAL_MS = 1_000;

/** A handler that answers true when it took the request. */
export type FrontHandler = (req: IncomingMessage, res: ServerResponse) => boolean;

/** Settings of {@link buildHttpServer}. */
export interface HttpListenerOptions {
  readonly checkReady: ReadinessCheck;
  /** Longest time that a whole request may take to arrive, in milliseconds. */
  readonly requestTimeoutMs: number;
  /** Longest time that the head of a request may take to arrive, and the first one of a connection, in milliseconds. */
  readonly headMsMax: number;
  /** Most connections at once; further ones are closed. */
  readonly connectionsMax: number;
  /** Of them, those of one network. */
  readonly connectionsPerNetwork: number;
  /** What connections are secured with. None unless set. */
  readonly tls?: ServiceTls | undefined;
  /** Told of whom it does not secure a connection with. */
  readonly onPeerRefused?: NoteRefusal;
}

/** Longest time that nothing may come or go on a connection with a request under way, in milliseconds; longer than any call takes. */
const SILENCE_MS_MAX = DEADLINE_MS_MAX + 15_000;

/**
 * Builds the HTTP/1.1 server: a handler of ours in front, then Fastify with Connect and the probes `/healthz` and `/readyz`. Fastify does
 * not set time-outs on a server that it did not make.
 */
export async function buildHttpServer(
  front: FrontHandler,
  connect: Parameters<typeof fastifyConnectPlugin>[1],
  options: HttpListenerOptions,
): Promise<FastifyInstance> {
  const { checkReady, requestTimeoutMs, tls } = options;
  const http = {
    ServerResponse: LingeringResponse,
    requestTimeout: requestTimeoutMs,
    headersTimeout: options.headMsMax,
    connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
  };
  const app = fastify({
    return503OnClosing: false,
    // A path that can't be decoded is none that there is.
    frameworkErrors: (_err, { raw }, reply) => refuse({ raw }, reply),
    serverFactory: (handler) =>
      listener(http, tls, (req, res) => {
        if (!front(req, res)) handler(req, res);
      }),
  });
  if (options.onPeerRefused) noteRefusedPeers(app.server, options.onPeerRefused);
  limitConnections(app.server, { total: options.connectionsMax, perNetwork: options.connectionsPerNetwork });
  app.server.timeout = SILENCE_MS_MAX;
  lingerOnClose(app, trackConnections(app.server), {
    transferMsMax: requestTimeoutMs,
    underWayMsMax: requestTimeoutMs,
    lastWords: NOT_TAKEN,
  });
  // What is no call of a known type would be read before anybody looks at its credential.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_req, _body, done) => done(null));
  app.setNotFoundHandler(refuse);
  await app.register(fastifyConnectPlugin, connect);
  app.get('/healthz', () => ({ status: 'ok' }));
  app.get('/readyz', async (_req, reply) => {
    const ready = await checkReady().then(
      () => true,
      () => false,
    );
    return reply.code(ready ? 200 : 503).send({ status: ready ? 'ready' : 'not ready' });
  });
  return app;
}

/** In place of the framework's own answer, which is no error of a protocol that is spoken here. */
function refuse({ raw }: Pick<FastifyRequest, 'raw'>, reply: Pick<FastifyReply, 'hijack' | 'raw'>): void {
  reply.hijack();
  refuseUnknown(raw, reply.raw);
}

function listener(options: ServerOptions, tls: ServiceTls | undefined, handler: RequestListener): Server {
  if (!tls) return createServer(options, handler);
  const server = createHttpsServer({ ...options, ...serverTlsOptions(tls) }, handler);
  followChanges(tls, server);
  endWithTrust(tls, server, (socket) => whenAnswered(socket, () => closeIdle(socket, NOT_TAKEN)));
  return server;
}
