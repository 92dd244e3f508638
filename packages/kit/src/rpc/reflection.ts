import { type DescEnum, type DescFile, type DescMessage, type DescService, toBinary } from '@bufbuild/protobuf';
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
    for (const symbol of symbolsOf(file)) bySymbol.set(symbol, file);
    file.dependencies.forEach(add);
  };
  for (const service of services) add(service.file);
  return { serviceNames: services.map((service) => service.typeName), byFile, bySymbol };
}

/** Full names of all that a file declares: services and methods, messages and fields, enums and values. */
function symbolsOf(file: DescFile): string[] {
  const ofEnum = (type: DescEnum) => [type.typeName, ...type.values.map((value) => `${scopeOf(type)}${value.name}`)];
  const ofMessage = (type: DescMessage): string[] => [
    type.typeName,
    ...type.members.map((member) => `${type.typeName}.${member.name}`),
    ...type.nestedEnums.flatMap(ofEnum),
    ...type.nestedMessages.flatMap(ofMessage),
  ];
  const ofService = (type: DescService) => [type.typeName, ...type.methods.map((method) => `${type.typeName}.${method.name}`)];
  return [...file.services.flatMap(ofService), ...file.messages.flatMap(ofMessage), ...file.enums.flatMap(ofEnum)];
}

/** The values of an enum are siblings of it in protobuf, not children. */
function scopeOf(type: DescEnum): string {
  return type.typeName.slice(0, type.typeName.lastIndexOf('.') + 1);
}

/** Both versions of the protocol have the same messages under two names. */
type ReflectionRequest = ServerReflectionRequest | ServerReflectionRequestAlpha;

function answer(index: Index, request: ReflectionRequest) {
  return { validHost: request.host, originalRequest: request as never, messageResponse: responseTo(index, request) };
}

function responseTo(index: Index, { messageRequest }: ReflectionRequest) {
  switch (messageRequest.case) {
    case 'listServices': {
      const service = index.serviceNames.map((name) => ({ name }));
      return { case: 'listServicesResponse' as const, value: { service } };
    }
    case 'fileByFilename':
      return files(index.byFile.get(messageRequest.value));
    case 'fileContainingSymbol':
      return files(index.bySymbol.get(messageRequest.value));
    case undefined:
      return error(Code.InvalidArgument, 'nothing was asked for');
    default:
      return error(Code.NotFound, 'there are no extensions');
  }
}

/** The file and all it imports, or the protocol's own "not found". */
function files(file: DescFile | undefined) {
  if (!file) return error(Code.NotFound, 'not found');
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

function error(errorCode: Code, errorMessage: string) {
  return { case: 'errorResponse' as const, value: { errorCode, errorMessage } };
}
