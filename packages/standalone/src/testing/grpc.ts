import {
  create,
  createFileRegistry,
  type DescMethod,
  type DescMethodUnary,
  type DescService,
  fromBinary,
  type Message,
  toBinary,
} from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { ConnectError, type Transport } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import { type ChannelCredentials, Client, credentials, Metadata } from '@grpc/grpc-js';
import { ServerReflection } from '@latchkey/proto/grpc/reflection/v1/reflection_pb';
import type { TestCertificate } from '@latchkey/testkit/certificates';

/** A service with TLS, and what a client of it shows. */
export interface GrpcAddress {
  /** `host:port` of gRPC, and the URL of Connect and gRPC-Web. */
  readonly grpc: string;
  readonly url: string;
  readonly credentials: ChannelCredentials;
  readonly tls: TestCertificate & { ca: string };
}

export function addressOf({ grpc = '', url }: { grpc?: string | undefined; url: string }, tls: GrpcAddress['tls']): GrpcAddress {
  const [ca, key, cert] = [tls.ca, tls.key, tls.cert].map((pem) => Buffer.from(pem)) as [Buffer, Buffer, Buffer];
  return { grpc, url, credentials: credentials.createSsl(ca, key, cert), tls };
}

/** Calls a method with an empty request; returns `0`, or gRPC's status code and the message. */
export interface Caller {
  readonly name: string;
  call(address: GrpcAddress, method: DescMethodUnary, authorization?: string): Promise<string>;
}

const TIMEOUT_MS = 10_000;
const pathOf = (method: DescMethod) => `/${method.parent.typeName}/${method.name}`;

const grpcJs: Caller = {
  name: 'gRPC by grpc-js',
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
        (err) => resolve(err ? `${err.code} ${err.details}` : '0'),
      );
    }).finally(() => client.close());
  },
};

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
const http2 = ({ grpc, tls }: GrpcAddress) => ({
  ...{ baseUrl: `https://${grpc}`, httpVersion: '2' as const, nodeOptions: tls, idleConnectionTimeoutMs: 1_000 },
});

/** Every protocol, by a client that speaks it. */
export const CALLERS: readonly Caller[] = [
  grpcJs,
  connectCaller('gRPC by connect-node', (address) => createGrpcTransport(http2(address))),
  connectCaller('gRPC-Web over HTTP/1.1', (address) => createGrpcWebTransport(http1(address))),
  connectCaller('Connect in binary over HTTP/1.1', (address) =>
    createConnectTransport({ ...http1(address), useBinaryFormat: true }),
  ),
  connectCaller('Connect in JSON over HTTP/1.1', (address) =>
    createConnectTransport({ ...http1(address), useBinaryFormat: false }),
  ),
];

function metadataOf(authorization: string | undefined): Metadata {
  const metadata = new Metadata();
  if (authorization !== undefined) metadata.set('authorization', authorization);
  return metadata;
}

/** The services of a process by reflection, as tools read them. */
export async function reflectServices(address: GrpcAddress, authorization: string): Promise<DescService[]> {
  const client = new Client(address.grpc, address.credentials);
  const method = ServerReflection.method.serverReflectionInfo;
  const ask = async (asks: ReadonlyArray<{ case: 'listServices' | 'fileContainingSymbol'; value: string }>) => {
    const call = client.makeBidiStreamRequest(
      pathOf(method),
      (request: Message) => Buffer.from(toBinary(method.input, request as never)),
      (bytes: Buffer) => fromBinary(method.output, bytes),
      metadataOf(authorization),
    );
    for (const messageRequest of asks) call.write(create(method.input, { messageRequest }));
    call.end();
    const answers = (await call.toArray()) as Array<ReturnType<typeof fromBinary<typeof method.output>>>;
    return answers.map(({ messageResponse }) => messageResponse);
  };
  try {
    const [list] = await ask([{ case: 'listServices', value: '' }]);
    if (list?.case !== 'listServicesResponse') throw new Error('services are not listed');
    const names = list.value.service.map(({ name }) => name);
    const files = (await ask(names.map((value) => ({ case: 'fileContainingSymbol', value })))).flatMap((answer) => {
      if (answer.case !== 'fileDescriptorResponse') throw new Error('a file is missing');
      return answer.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
    });
    const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: inOrder(files) }));
    return names.map((name) => registry.getService(name) as DescService);
  } finally {
    client.close();
  }
}

/** Each file once, after those that it imports. */
function inOrder<F extends { name: string; dependency: string[] }>(files: readonly F[]): F[] {
  const ordered = new Map<string, F>();
  const add = (file: F | undefined) => {
    if (!file || ordered.has(file.name)) return;
    for (const name of file.dependency) add(files.find((one) => one.name === name));
    ordered.set(file.name, file);
  };
  for (const file of files) add(file);
  return [...ordered.values()];
}
