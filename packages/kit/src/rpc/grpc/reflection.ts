import { type DescEnum, type DescFile, type DescMessage, type DescService, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Code } from '@connectrpc/connect';
import { ServerReflection, type ServerReflectionRequest } from '@latchkey/proto/grpc/reflection/v1/reflection_pb';
import { type RpcRoute, rpcRoute } from '../route.ts';

/** Server reflection (`grpc.reflection.v1`), so that tools like grpcurl work without the `.proto` files. */
export function reflectionRoute(services: readonly DescService[]): RpcRoute {
  const index = indexFiles([...services, ServerReflection]);
  return rpcRoute(ServerReflection, {
    async *serverReflectionInfo(requests) {
      for await (const request of requests) {
        yield { validHost: request.host, originalRequest: request, messageResponse: responseTo(index, request) };
      }
    },
  });
}

interface Index {
  readonly serviceNames: readonly string[];
  readonly byFile: ReadonlyMap<string, DescFile>;
  readonly bySymbol: ReadonlyMap<string, DescFile>;
}

function indexFiles(services: readonly DescService[]): Index {
  const byFile = new Map<string, DescFile>();
  const bySymbol = new Map<string, DescFile>();
  for (const file of withImports(services.map((service) => service.file))) {
    byFile.set(file.proto.name, file);
    for (const symbol of symbolsOf(file)) bySymbol.set(symbol, file);
  }
  return { serviceNames: services.map((service) => service.typeName), byFile, bySymbol };
}

/** Files in order, each followed by what it imports. */
function withImports(files: readonly DescFile[]): Set<DescFile> {
  const all = new Set<DescFile>();
  const add = (file: DescFile) => {
    if (all.has(file)) return;
    all.add(file);
    file.dependencies.forEach(add);
  };
  files.forEach(add);
  return all;
}

/** Full names of all that a file declares: services and methods, messages and fields, enums and values. */
function symbolsOf(file: DescFile): string[] {
  const ofEnum = (type: DescEnum) => {
    // The values of an enum are its siblings in protobuf, not its children.
    const scope = type.typeName.slice(0, type.typeName.lastIndexOf('.') + 1);
    return [type.typeName, ...type.values.map((value) => scope + value.name)];
  };
  const ofMessage = (type: DescMessage): string[] => [
    type.typeName,
    ...type.members.map((member) => `${type.typeName}.${member.name}`),
    ...type.nestedEnums.flatMap(ofEnum),
    ...type.nestedMessages.flatMap(ofMessage),
  ];
  const ofService = (type: DescService) => [type.typeName, ...type.methods.map((method) => `${type.typeName}.${method.name}`)];
  return [...file.services.flatMap(ofService), ...file.messages.flatMap(ofMessage), ...file.enums.flatMap(ofEnum)];
}

function responseTo(index: Index, { messageRequest }: ServerReflectionRequest) {
  switch (messageRequest.case) {
    case 'listServices': {
      const service = index.serviceNames.map((name) => ({ name }));
      return { case: 'listServicesResponse' as const, value: { service } };
    }
    case 'fileByFilename':
      return fileResponse(index.byFile.get(messageRequest.value));
    case 'fileContainingSymbol':
      return fileResponse(index.bySymbol.get(messageRequest.value));
    case undefined:
      return errorResponse(Code.InvalidArgument, 'empty request');
    default:
      return errorResponse(Code.NotFound, 'there are no extensions');
  }
}

/** The file and everything it imports, or the protocol's own "not found". */
function fileResponse(file: DescFile | undefined) {
  if (!file) return errorResponse(Code.NotFound, 'not found');
  const fileDescriptorProto = [...withImports([file])].map((each) => toBinary(FileDescriptorProtoSchema, each.proto));
  return { case: 'fileDescriptorResponse' as const, value: { fileDescriptorProto } };
}

function errorResponse(errorCode: Code, errorMessage: string) {
  return { case: 'errorResponse' as const, value: { errorCode, errorMessage } };
}
