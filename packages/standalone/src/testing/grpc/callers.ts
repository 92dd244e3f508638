import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { create, type DescMethodUnary, fromBinary, toBinary } from '@bufbuild/protobuf';
import { ConnectError, type Transport } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import { type ChannelCredentials, Client, credentials, loadPackageDefinition, Metadata, type ServiceError } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import type { TestCertificate } from '@latchkey/testkit/certificates';
import { pathOf } from './method-path.ts';

/** Where a service answers, and what a caller shows. */
export interface GrpcAddress {
  /** `host:port`. */
  readonly grpc: string;
  /** URL for Connect and gRPC-Web. */
  readonly url: string;
  readonly credentials: ChannelCredentials;
  /** What Node's clients are given for TLS. */
  readonly tls: object;
}

/** The address of a process with TLS, as somebody with a certificate of the authority calls it, or without TLS. */
export function addressOf(
  process: { readonly grpc: string | undefined; readonly url: string },
  tls?: TestCertificate & { ca: string },
): GrpcAddress {
  const { grpc = '', url } = process;
  if (!tls) return { grpc, url, credentials: credentials.createInsecure(), tls: {} };
  const [ca, key, cert] = [tls.ca, tls.key, tls.cert].map((pem) => Buffer.from(pem)) as [Buffer, Buffer, Buffer];
  return { grpc, url, credentials: credentials.createSsl(ca, key, cert), tls };
}

/** A client of some library, which calls any method with an empty request and says how that ended: `0`, or the status code of gRPC and the message. */
export interface Caller {
  readonly name: string;
  call(address: GrpcAddress, method: DescMethodUnary, authorization?: string): Promise<string>;
}

const TIMEOUT_MS = 10_000;
const SCHEMA = fileURLToPath(new URL('../../../../../proto/schema/', import.meta.url));

const generated: Caller = {
  name: 'grpc-js with generated messages',
  call: (address, method, authorization) => {
    const client = new Client(address.grpc, address.credentials);
    return new Promise<string>((resolve) => {
      client.makeUnaryRequest(
        pathOf(method),
        (bytes: Uint8Array) => Buffer.from(bytes),
        (bytes) => fromBinary(method.output, bytes),
        toBinary(method.input, create(method.input)),
        metadataOf(authorization),
        { deadline: Date.now() + TIMEOUT_MS },
        (err) => resolve(outcomeOf(err)),
      );
    }).finally(() => client.close());
  },
};

type DynamicService = new (
  address: string,
  credentials: ChannelCredentials,
) => Client & Record<string, (...args: unknown[]) => void>;

/** Every message and service of `proto/schema`, read as it is and not generated. */
const dynamicDefinition = loadSync(
  readdirSync(SCHEMA, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.proto')),
  { includeDirs: [SCHEMA], keepCase: false },
);
const dynamicPackages = loadPackageDefinition(dynamicDefinition);

const dynamic: Caller = {
  name: 'grpc-js with proto-loader',
  call: (address, method, authorization) => {
    const found = method.parent.typeName.split('.').reduce((scope, name) => (scope as never)[name], dynamicPackages as unknown);
    const client = new (found as DynamicService)(address.grpc, address.credentials);
    return new Promise<string>((resolve) => {
      const done = (err: ServiceError | null) => resolve(outcomeOf(err));
      client[method.name]?.({}, metadataOf(authorization), { deadline: Date.now() + TIMEOUT_MS }, done);
    }).finally(() => client.close());
  },
};

/** A client of connect-node, of whatever protocol. */
function connectCaller(name: string, transportOf: (address: GrpcAddress) => Transport): Caller {
  return {
    name,
    async call(address, method, authorization) {
      const headers = authorization === undefined ? {} : { authorization };
      try {
        await transportOf(address).unary(method, undefined, TIMEOUT_MS, headers, {});
        return '0';
      } catch (err) {
        const { code, rawMessage } = ConnectError.from(err);
        return `${code} ${rawMessage}`;
      }
    },
  };
}

const http1 = ({ url, tls }: GrpcAddress) => ({ baseUrl: url, httpVersion: '1.1' as const, nodeOptions: tls });
const http2 = ({ grpc, url, tls }: GrpcAddress) => ({
  baseUrl: `${new URL(url).protocol}//${grpc}`,
  httpVersion: '2' as const,
  nodeOptions: tls,
  idleConnectionTimeoutMs: 1_000,
});

/** Every kind of client that may call the services. */
export const CALLERS: readonly Caller[] = [
  generated,
  dynamic,
  connectCaller('gRPC by connect-node', (address) => createGrpcTransport({ ...http2(address) })),
  connectCaller('gRPC-Web over HTTP/1.1', (address) => createGrpcWebTransport(http1(address))),
  connectCaller('Connect in binary over HTTP/1.1, the lean path', (address) =>
    createConnectTransport({ ...http1(address), useBinaryFormat: true }),
  ),
  connectCaller('Connect in JSON over HTTP/1.1', (address) =>
    createConnectTransport({ ...http1(address), useBinaryFormat: false }),
  ),
  connectCaller('Connect over HTTP/2', (address) => createConnectTransport({ ...http2(address), useBinaryFormat: true })),
];

const outcomeOf = (err: ServiceError | null) => (err ? `${err.code} ${err.details}` : '0');

function metadataOf(authorization: string | undefined): Metadata {
  const metadata = new Metadata();
  if (authorization !== undefined) metadata.set('authorization', authorization);
  return metadata;
}
