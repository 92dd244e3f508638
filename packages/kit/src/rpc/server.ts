import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { ConnectRouter, Interceptor } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { Health } from '@latchkey/proto/health/v1/health_pb';
import { atMostEvery } from '../at-most-every.ts';
import { boundRequest } from '../http/bound-request.ts';
import { ensureRequestId } from '../http/request-id.ts';
import type { Logger } from '../logger.ts';
import type { ServiceTls } from '../tls/service-tls.ts';
import { bindMethods, methodPath } from './bound-method.ts';
import { CALLS_AT_ONCE, CallCounter } from './call-counter.ts';
import { createCredentialCheck, createRequestGate } from './credentials.ts';
import { logDefects } from './defects.ts';
import { listenForGrpc } from './grpc-listener.ts';
import { healthRoute, type ReadinessCheck } from './health.ts';
import { buildHttpServer, type FrontHandler } from './http-listener.ts';
import { createLeanHandler } from './lean-handler.ts';
import { noteArrival, OPEN_MESSAGE_BYTES_MAX, OpenCalls } from './open-calls.ts';
import { createPlainHandler, type PlainRoute } from './plain-route.ts';
import { listenForProbes } from './probe-listener.ts';
import { logReadiness } from './readiness-log.ts';
import { reflectionRoutes } from './reflection.ts';
import { refuseUnknown } from './refusal.ts';
import { createRefusalLog } from './refusal-log.ts';
import { DEADLINE_MS_MAX, MESSAGE_BYTES_MAX, type RpcRoute } from './route.ts';
import { boundRouter } from './router.ts';
import { countRefusals } from './rpc-metrics.ts';

/** What a service's server needs. */
export interface RpcServerOptions {
  readonly routes: readonly RpcRoute[];
  /** Answered over HTTP/1.1 in front of everything else. None unless set. */
  readonly plainRoutes?: readonly PlainRoute[];
  readonly logger: Logger;
  /** Credentials accepted from callers; see `createCredentialCheck`. */
  readonly credentials: readonly string[];
  readonly checkReady: ReadinessCheck;
  readonly host: string;
  /** Port for Connect, gRPC-Web and probes over HTTP/1.1; 0 lets the system choose. */
  readonly port: number;
  /** Port for gRPC over HTTP/2; 0 lets the system choose. */
  readonly grpcPort: number;
  /** Applied in order around each call, whatever its protocol. None unless set. */
  readonly interceptors?: readonly Interceptor[];
  /** Longest time that the body of a request for anything but a plain route may take, in milliseconds. The longest deadline unless set. */
  readonly bodyMsMax?: number;
  /** What connections are secured with, and what peers have to prove. Cleartext unless set. */
  readonly tls?: ServiceTls | undefined;
  /** Port for `/healthz` and `/readyz` in clear, for probes that show no certificate. None unless set. */
  readonly probePort?: number | undefined;
  /** Most calls under way at once, whatever their protocol; health and reflection are not counted. */
  readonly callsAtOnce?: number;
  /** Most connections open at once on each port. */
  readonly connectionsMax?: number;
  /** Of them, those of one address. */
  readonly connectionsPerIp?: number;
  /** Time for the head of a request, and for what a session of HTTP/2 begins with, in milliseconds; 10 s unless set. */
  readonly headMsMax?: number;
  /** Time for the message of a call without a credential to come whole, in milliseconds; 5 s unless set. */
  readonly openMessageMsMax?: number;
  /** Time after which a session of HTTP/2 without a call is closed, in milliseconds; 5 minutes unless set. */
  readonly idleMsMax?: number;
}

/** A service's server once it listens. */
export interface RpcServer {
  readonly port: number;
  readonly grpcPort: number;
  readonly probePort: number | undefined;
  /**
   * Refuses new connections, lets the unary calls and the plain requests under way end, then ends the streams, and resolves. No call takes longer
   * than the longest deadline, and no stream more than a second after them.
   */
  stop(): Promise<void>;
}

/** How long streams, and answers being written, have to end once no unary call is under way, in milliseconds. */
const STREAM_GRACE_MS = 1_000;

/**
 * How long no call has to have been under way before streams are told to end, in milliseconds: connections that are open when a stop begins may bring one for
 * as long as they linger, a quarter of a second, and it is let end as well.
 */
const QUIET_MS = 500;

/**
 * Longest time that a request may take to arrive where there are plain routes, in milliseconds. Each has a shorter bound of its own, and so has
 * everything else.
 */
const PLAIN_REQUEST_MS_MAX = 25 * 3_600_000;

/** Most connections on each port where nothing else is set. */
const CONNECTIONS_MAX = 10_000;
const CONNECTIONS_PER_IP = 1_000;

/** A client that opens a connection has something to ask for; ours asks again where it is so late that its connection was closed. */
const HEAD_MS_MAX = 10_000;

/** How long an answer about readiness stands, in milliseconds: anyone may ask, and each check asks the database. */
const READINESS_AGE_MS_MAX = 250;

/** Time for a call over HTTP/2 beside its deadline: to be sent, and for its answer to be read, in milliseconds. */
const TRANSFER_MS_MAX = 60_000;

/** Goes on for as long as the caller likes. */
const ENDLESS = new Set([methodPath(Health.method.watch)]);

/** The longest deadline that connect-node's timer can hold, in milliseconds. Ours, which is shorter, then ends a unary call. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/**
 * Serves RPC routes (architecture 1): a Fastify server over HTTP/1.1 with the lean handler in front and connect-fastify behind it
 * for Connect JSON and gRPC-Web, and connect-node over HTTP/2 for gRPC, either with mutual TLS where that is given. Health and reflection answer anyone; nothing
 * else answers without a credential.
 */
export async function startRpcServer(options: RpcServerOptions): Promise<RpcServer> {
  const { logger, host, tls, bodyMsMax = DEADLINE_MS_MAX, headMsMax = HEAD_MS_MAX } = options;
  const { connectionsMax = CONNECTIONS_MAX, connectionsPerIp = CONNECTIONS_PER_IP } = options;
  const checkReady = atMostEvery(READINESS_AGE_MS_MAX, logReadiness(options.checkReady, logger));
  const calls = new CallCounter(options.callsAtOnce ?? CALLS_AT_ONCE);
  const methods = bindMethods(options.routes, logger);
  const isKnown = createCredentialCheck(options.credentials);
  const checkCredential = countRefusals(
    isKnown,
    createRefusalLog(logger, 'calls without a valid service credential are refused'),
  );
  const onPeerRefused = createRefusalLog(logger, 'connections without TLS that can be trusted are refused');
  const openCalls = new OpenCalls(isKnown, options.openMessageMsMax);
  const interceptors = [...(options.interceptors ?? [])];
  const observed = [logDefects(logger), ...interceptors];
  const shutdown = new AbortController();
  const shared = {
    routes: openRouter({ ...options, checkReady, interceptors: observed }, methods, calls),
    interceptors: observed,
    acceptCompression: [],
    readMaxBytes: MESSAGE_BYTES_MAX,
    writeMaxBytes: MESSAGE_BYTES_MAX,
    maxTimeoutMs: TIMER_MS_MAX,
    requestGate: createRequestGate(checkCredential),
    shutdownSignal: shutdown.signal,
  };
  const lean = createLeanHandler({ methods, checkCredential, interceptors, logger, calls });
  const plain = createPlainHandler({ routes: options.plainRoutes ?? [], checkCredential, logger, calls });
  const front: FrontHandler = (req, res) => {
    ensureRequestId(req);
    if (plain(req, res)) return true;
    boundRequest(req, res, bodyMsMax);
    return lean(req, res) || !openCalls.admit(req, res);
  };
  const requestTimeoutMs = options.plainRoutes ? PLAIN_REQUEST_MS_MAX : DEADLINE_MS_MAX;
  const connect = { ...shared, contextValues: ({ raw }: { raw: IncomingMessage }) => openCalls.valuesOf(raw) };
  const connections = { connectionsMax, connectionsPerNetwork: connectionsPerIp };
  const app = await buildHttpServer(front, connect, {
    checkReady,
    requestTimeoutMs,
    headMsMax,
    ...connections,
    tls,
    onPeerRefused,
  });
  const listening: Array<{ close(): Promise<unknown> }> = [app];
  const orClose = <T extends { close(): Promise<unknown> }>(opening: Promise<T>) =>
    opening.then(
      (opened) => {
        listening.push(opened);
        return opened;
      },
      async (err: unknown) => {
        await Promise.all(listening.map((one) => one.close()));
        throw err;
      },
    );
  await app.listen({ host, port: options.port });
  const callMsMax = DEADLINE_MS_MAX + TRANSFER_MS_MAX;
  const { idleMsMax } = options;
  const sessions = { sessionsMax: connectionsMax, sessionsPerNetwork: connectionsPerIp, greetingMsMax: headMsMax, idleMsMax };
  const bounds = { ...sessions, callMsMax, endless: ENDLESS, onPeerRefused };
  const adapter = connectNodeAdapter({
    ...shared,
    contextValues: (req) => openCalls.valuesOf(req),
    fallback: (req, res) => refuseUnknown(req, res as Http2ServerResponse),
  });
  const grpc = await orClose(listenForGrpc(admitted(openCalls, adapter), { host, port: options.grpcPort, tls, ...bounds }));
  const { probePort } = options;
  const probes = probePort === undefined ? undefined : await orClose(listenForProbes(checkReady, host, probePort));
  const stop = async () => {
    const closed = Promise.all(listening.map((one) => one.close()));
    await Promise.race([closed, calls.quiet(QUIET_MS)]);
    shutdown.abort();
    const grace = setTimeout(() => {
      app.server.closeAllConnections();
      grpc.destroy();
    }, STREAM_GRACE_MS);
    await closed.finally(() => clearTimeout(grace));
  };
  return { port: (app.server.address() as AddressInfo).port, grpcPort: grpc.port, probePort: probes?.port, stop };
}

/** A handler of requests over HTTP/2 behind what those over HTTP/1.1 go through in front. */
function admitted(openCalls: OpenCalls, handler: ReturnType<typeof connectNodeAdapter>) {
  return (req: Http2ServerRequest, res: Http2ServerResponse): void => {
    ensureRequestId(req);
    if (openCalls.admit(req, res)) handler(req, res);
  };
}

/** Everything that a server answers: its own routes, health and reflection. */
function openRouter(options: RpcServerOptions, methods: ReturnType<typeof bindMethods>, calls: CallCounter) {
  const { routes, checkReady, logger, interceptors = [] } = options;
  const health = healthRoute(checkReady, routes);
  const services = [...routes, health].map((route) => route.service);
  return (router: ConnectRouter) => {
    boundRouter(router, routes, methods, logger, calls);
    const bounds = { readMaxBytes: OPEN_MESSAGE_BYTES_MAX, interceptors: [...interceptors, noteArrival] };
    for (const { service, impl } of [health, ...reflectionRoutes(services)]) router.service(service, impl, bounds);
  };
}
