import { type DescFile, type DescService, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Code } from '@connectrpc/connect';
import { ServerReflection, type ServerReflectionRequest } from '@latchkey/proto/grpc/reflection/v1/reflection_pb';
import {
  ServerReflection as ServerReflectionAlpha,
  type ServerReflectionRequest as ServerReflectionRequestAlpha,
} from '@latchkey/proto/grpc/reflection/v1alpha/reflection_pb';
import { type RpcRoute, rpcRoute } from './route.ts';

/**
 * Server reflection (`grpc.reflection.v1`, and `v1alpha` for older tools) over the given services, so that tools like grpcurl
 * work without the `.proto` files.
 */
export function reflectionRoutes(services: readonly DescService[]): RpcRoute[] {
  const index = indexFiles([...services, ServerReflection, ServerReflectionAlpha]);
  async function* serverReflectionInfo(requests: AsyncIterable<ReflectionRequest>) {
    for await (const request of requests) yield answer(index, request);
  }
  return [rpcRoute(ServerReflection, { serverReflectionInfo }), rpcRoute(ServerReflectionAlpha, { serverReflectionInfo })];
}

interface Index {
  readonly serviceNames: readonly string[];
  readonly byFile: ReadonlyMap<string, DescFile>;
  readonly bySymbol: ReadonlyMap<string, DescFile>;
}

function indexFiles(services: readonly DescService[]): Index {
  const byFile = new Map<string, DescFile>();
  const bySymbol = new Map<string, DescFile>();
  const add = (file: DescFile) => {
    if (byFile.has(file.proto.name)) return;
    byFile.set(file.proto.name, file);
    for (const type of [...file.messages, ...file.enums, ...file.services]) bySymbol.set(type.typeName, file);
    for (const service of file.services) {
      for (const method of service.methods) bySymbol.set(`${service.typeName}.${method.name}`, file);
    }
    file.dependencies.forEach(add);
  };
  for (const service of services) add(service.file);
  return { serviceNames: services.map((service) => service.typeName), byFile, bySymbol };
}

/** Both versions of the protocol have the same messages under two names. */
type ReflectionRequest = Pick<ServerReflectionRequest | ServerReflectionRequestAlpha, 'host' | 'messageRequest'>;

function answer(index: Index, request: ReflectionRequest) {
  const { messageRequest } = request;
  const base = { validHost: request.host };
  switch (messageRequest.case) {
    case 'listServices': {
      const service = index.serviceNames.map((name) => ({ name }));
      return { ...base, messageResponse: { case: 'listServicesResponse' as const, value: { service } } };
    }
    case 'fileByFilename':
      return { ...base, messageResponse: files(index.byFile.get(messageRequest.value)) };
    case 'fileContainingSymbol':
      return { ...base, messageResponse: files(index.bySymbol.get(messageRequest.value)) };
    default:
      return { ...base, messageResponse: files(undefined) };
  }
}

/** The file and all it imports, or the protocol's own "not found". Our files have no extensions. */
function files(file: DescFile | undefined) {
  if (!file) {
    return { case: 'errorResponse' as const, value: { errorCode: Code.NotFound, errorMessage: 'not found' } };
  }
  const all = new Set<DescFile>();
  const add = (next: DescFile) => {
    if (all.has(next)) return;
    all.add(next);
    next.dependencies.forEach(add);
  };
  add(file);
  const fileDescriptorProto = [...all].map((next) => toBinary(FileDescriptorProtoSchema, next.proto));
  return { case: 'fileDescriptorResponse' as const, value: { fileDescriptorProto } };
}
