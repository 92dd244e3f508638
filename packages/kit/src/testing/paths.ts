import { Agent } from 'node:http';
import type { DescMethod } from '@bufbuild/protobuf';
import type { Interceptor, Transport } from '@connectrpc/connect';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from '@connectrpc/connect-node';
import { onTestFinished } from 'vitest';
import { createDirectTransport } from '../rpc/client/direct-transport.ts';
import type { RpcRoute } from '../rpc/route.ts';
import type { RpcServerOptions } from '../rpc/server/server.ts';
import { type LogLine, memoryLogger } from './memory-logger.ts';
import { CREDENTIAL, openTransport, startStockServer, startTestServer } from './servers.ts';

/** Options of the server, and another credential for the client; empty presents none. */
export type PathOptions = Partial<RpcServerOptions> & { readonly credential?: string };

/** One way from a client to a handler. */
export interface Path {
  readonly name: string;
  /** Header in which a caller sends its deadline, and one of 50 ms; absent where none is sent. */
  readonly deadlineHeader?: Readonly<Record<string, string>>;
  /**
   * Returns a client and the log of a server that can talk; `stop` stops the server, where it is
   * ours.
   */
  open(
    routes: readonly RpcRoute[],
    options?: PathOptions,
  ): Promise<{ readonly transport: Transport; readonly lines: readonly LogLine[]; readonly stop?: () => Promise<void> }>;
}

const authorize =
  (credential: string): Interceptor =>
  (next) =>
  (req) => {
    if (credential !== '') req.header.set('authorization', `Bearer ${credential}`);
    return next(req);
  };

function http1(baseUrl: string, credential: string) {
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  const interceptors = [authorize(credential)];
  return { baseUrl, httpVersion: '1.1' as const, nodeOptions: { agent }, acceptCompression: [], interceptors };
}

function grpc(baseUrl: string, credential: string): Transport {
  const sessionManager = new Http2SessionManager(baseUrl);
  onTestFinished(() => sessionManager.abort());
  return createGrpcTransport({ baseUrl, sessionManager, interceptors: [authorize(credential)], acceptCompression: [] });
}

const toOurs = (client: (url: string, credential: string) => Transport, port: 'url' | 'grpcUrl' = 'url'): Path['open'] => {
  return async (routes, { credential = CREDENTIAL, ...options } = {}) => {
    const server = await startTestServer(routes, options);
    return { transport: client(server[port], credential), lines: server.lines, stop: server.stop };
  };
};

/** Of the others, health and reflection, the server takes no batches. */
const isOurs = ({ parent }: DescMethod) => parent.typeName.startsWith('latchkey.');

const connectDeadline = { 'connect-timeout-ms': '50' };
const grpcDeadline = { 'grpc-timeout': '50m' };

export const GRPC_PATH: Path = {
  name: 'gRPC client, our gRPC port',
  open: toOurs(grpc, 'grpcUrl'),
  deadlineHeader: grpcDeadline,
};

/** Paths to our server, each in another protocol or with another client. */
export const PATHS_TO_OUR_SERVER: readonly Path[] = [
  { name: 'our client, our server', open: toOurs(openTransport) },
  { name: 'our client with batches, our server', open: toOurs((...to) => openTransport(...to, undefined, isOurs)) },
  {
    name: 'Connect client, our server',
    open: toOurs((...to) => createConnectTransport({ ...http1(...to), useBinaryFormat: true })),
    deadlineHeader: connectDeadline,
  },
  {
    name: 'Connect JSON client, our server',
    open: toOurs((...to) => createConnectTransport({ ...http1(...to), useBinaryFormat: false })),
    deadlineHeader: connectDeadline,
  },
  {
    name: 'gRPC-Web client, our server',
    open: toOurs((...to) => createGrpcWebTransport(http1(...to))),
    deadlineHeader: grpcDeadline,
  },
  GRPC_PATH,
];

/** Every way to a handler. */
export const ALL_PATHS: readonly Path[] = [
  ...PATHS_TO_OUR_SERVER,
  {
    name: 'our client, connect-node server',
    async open(routes) {
      const { url, lines } = await startStockServer(routes);
      return { transport: openTransport(url), lines };
    },
  },
  {
    name: 'direct transport',
    async open(routes) {
      const { logger, lines } = memoryLogger();
      return { transport: createDirectTransport(routes, logger), lines };
    },
  },
];
