import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { fastifyConnectPlugin } from '@connectrpc/connect-fastify';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { limitConnections } from '../../http/concurrency-limit.ts';
import { trackConnections, whenAnswered } from '../../http/connections.ts';
import { closeIdle, lingerOnClose } from '../../http/drain.ts';
import { LingeringResponse } from '../../http/lingering-close.ts';
import { type ReadinessCheck, registerProbes } from '../../http/probes.ts';
import { secureServer, serverTlsOptions, whenUntrusted } from '../../tls/server-tls.ts';
import type { ServiceTls } from '../../tls/service-tls.ts';
import { DEADLINES_MS } from '../deadlines.ts';
import type { ServerLimits } from './limits.ts';
import type { LogRejection } from './rejection-log.ts';
import { rejectUnknownMethod } from './send-response.ts';

/** Longer than our clients use an idle connection, so that none sends on a closing one. */
const KEEP_ALIVE_MS = 65_000;

/**
 * Sent when a connection is closed between two requests. A client may repeat any request that it
 * has sent by then: it has not been read (RFC 9110, 15.5.9).
 */
const UNREAD = 'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';

const TIMEOUT_CHECK_INTERVAL_MS = 1_000;

/** Silence on a connection with a request under way, in milliseconds; longer than any call. */
const SILENCE_MS_MAX = DEADLINES_MS.longest + 15_000;

interface HttpListenerOptions {
  /** Runs before everything else; returns true for a request that it answered. */
  readonly front: (req: IncomingMessage, res: ServerResponse) => boolean;
  readonly connect: Parameters<typeof fastifyConnectPlugin>[1];
  readonly checkReady: ReadinessCheck;
  /** Longest time for a whole request to arrive, in milliseconds. */
  readonly requestTimeoutMs: number;
  readonly limits: ServerLimits;
  readonly tls: ServiceTls | undefined;
  readonly logRejectedPeer: LogRejection;
}

/** Builds the HTTP/1.1 server: `front`, then Fastify with Connect and the probes. */
export async function buildHttpServer(options: HttpListenerOptions): Promise<FastifyInstance> {
  const { front, checkReady, requestTimeoutMs, limits, tls } = options;
  // Fastify sets no time-outs on a server that it did not create.
  const http = {
    ServerResponse: LingeringResponse,
    requestTimeout: requestTimeoutMs,
    headersTimeout: limits.headMs,
    connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
  };
  const app = fastify({
    return503OnClosing: false,
    // A path that cannot be decoded does not exist.
    frameworkErrors: (_err, { raw }, reply) => rejectUnknown({ raw }, reply),
    serverFactory: (handler) => {
      const listener = (req: IncomingMessage, res: ServerResponse) => {
        if (!front(req, res)) handler(req, res);
      };
      if (!tls) return createServer(http, listener);
      const server = createHttpsServer({ ...http, ...serverTlsOptions(tls) }, listener);
      secureServer(server, tls, options.logRejectedPeer);
      return server.on('secureConnection', (socket) =>
        whenUntrusted(tls, socket, () => whenAnswered(socket, () => closeIdle(socket, UNREAD))),
      );
    },
  });
  limitConnections(app.server, { total: limits.connections, perNetwork: limits.connectionsPerIp });
  app.server.timeout = SILENCE_MS_MAX;
  lingerOnClose(app, trackConnections(app.server), {
    transferMsMax: requestTimeoutMs,
    underWayMsMax: requestTimeoutMs,
    lastWords: UNREAD,
  });
  // Fastify would read bodies of other content types before it finds the route.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_req, _body, done) => done(null));
  app.setNotFoundHandler(rejectUnknown);
  await app.register(fastifyConnectPlugin, options.connect);
  registerProbes(app, checkReady);
  return app;
}

function rejectUnknown({ raw }: Pick<FastifyRequest, 'raw'>, reply: Pick<FastifyReply, 'hijack' | 'raw'>): void {
  reply.hijack();
  rejectUnknownMethod(raw, reply.raw);
}
