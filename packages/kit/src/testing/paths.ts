import { Agent } from 'node:http';
import type { Interceptor, Transport } from '@connectrpc/connect';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from '@connectrpc/connect-node';
import { onTestFinished } from 'vitest';
import { createDirectTransport } from '../rpc/direct-transport.ts';
import type { RpcRoute } from '../rpc/route.ts';
import { createServiceTransport } from '../rpc/transport.ts';
import { type LogLine, memoryLogger } from './memory-logger.ts';
import { CREDENTIAL, startStockServer, startTestServer } from './servers.ts';

/** What a path may be made with. */
export interface PathOptions {
  readonly clientInterceptors?: Interceptor[];
  readonly serverInterceptors?: Interceptor[];
  /** Presented instead of the right one; empty presents none. */
  readonly credential?: string;
  /** Credentials that the server takes. */
  readonly credentials?: readonly string[];
  /** Calls that the server takes at once. */
  readonly callsAtOnce?: number;
}

/** A client and a server that can talk. */
export interface OpenPath {
  readonly transport: Transport;
  /** What the server logged. */
  readonly lines: readonly LogLine[];
  /** Stops the server, where it is ours. */
  readonly stop?: () => Promise<void>;
}

/** One way from a client to a handler. */
export interface Path {
  readonly name: string;
  /** Header in which a caller tells its deadline, and one of 50 ms; absent where no header is sent. */
  readonly deadlineHeader?: Readonly<Record<string, string>>;
  open(routes: readonly RpcRoute[], options?: PathOptions): Promise<OpenPath>;
}

type Connect = (baseUrl: string, options: PathOptions) => Transport;

const lean: Connect = (baseUrl, { credential, clientInterceptors }) => {
  const transport = createServiceTransport(baseUrl, credential ?? CREDENTIAL, { interceptors: clientInterceptors ?? [] });
  onTestFinished(() => transport.close());
  return transport;
};

const authorize =
  (credential: string): Interceptor =>
  (next) =>
  (req) => {
    if (credential !== '') req.header.set('authorization', `Bearer ${credential}`);
    return next(req);
  };

const interceptors = ({ clientInterceptors = [], credential = CREDENTIAL }: PathOptions) => [
  ...clientInterceptors,
  authorize(credential),
];

function http1(baseUrl: string, options: PathOptions) {
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  const common = { baseUrl, httpVersion: '1.1' as const, nodeOptions: { agent }, acceptCompression: [] };
  return { ...common, interceptors: interceptors(options) };
}

const connect: Connect = (url, options) => createConnectTransport({ ...http1(url, options), useBinaryFormat: true });
const connectJson: Connect = (url, options) => createConnectTransport({ ...http1(url, options), useBinaryFormat: false });
const grpcWeb: Connect = (url, options) => createGrpcWebTransport(http1(url, options));

const grpc: Connect = (baseUrl, options) => {
  const sessionManager = new Http2SessionManager(baseUrl);
  onTestFinished(() => sessionManager.abort());
  return createGrpcTransport({ baseUrl, sessionManager, interceptors: interceptors(options), acceptCompression: [] });
};

const toOurs = (client: Connect, port: 'url' | 'grpcUrl' = 'url'): Path['open'] => {
  return async (routes, options = {}) => {
    const { serverInterceptors = [], credentials = [CREDENTIAL], callsAtOnce = 1_000 } = options;
    const server = await startTestServer(routes, { interceptors: serverInterceptors, credentials, callsAtOnce });
    return { transport: client(server[port], options), lines: server.lines, stop: server.stop };
  };
};

const toStock: Path['open'] = async (routes, options = {}) => {
  const server = await startStockServer(routes, options.serverInterceptors);
  return { transport: lean(server.url, options), lines: server.lines };
};

const direct: Path['open'] = async (routes, { clientInterceptors = [], serverInterceptors = [] } = {}) => {
  const { logger, lines } = memoryLogger();
  const all = [...clientInterceptors, ...serverInterceptors];
  return { transport: createDirectTransport(routes, logger, { interceptors: all }), lines };
};

const connectDeadline = { 'connect-timeout-ms': '50' };
const grpcDeadline = { 'grpc-timeout': '50m' };

/** Paths to our server, each in another protocol or with another client. */
export const PATHS_TO_OUR_SERVER: readonly Path[] = [
  { name: 'lean client, lean server', open: toOurs(lean) },
  { name: 'Connect client, lean server', open: toOurs(connect), deadlineHeader: connectDeadline },
  { name: 'Connect JSON client, our server', open: toOurs(connectJson), deadlineHeader: connectDeadline },
  { name: 'gRPC-Web client, our server', open: toOurs(grpcWeb), deadlineHeader: grpcDeadline },
  { name: 'gRPC client, our gRPC port', open: toOurs(grpc, 'grpcUrl'), deadlineHeader: grpcDeadline },
];

/** Every way to a handler. */
export const ALL_PATHS: readonly Path[] = [
  ...PATHS_TO_OUR_SERVER,
  { name: 'lean client, connect-node server', open: toStock },
  { name: 'direct transport', open: direct },
];
