import { createRegistry, type DescFile, type DescService, type Registry, toBinary } from '@bufbuild/protobuf';
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

/** What reflection can find: files by name, and the registry of what they declare. */
interface Index {
  readonly serviceNames: readonly string[];
  readonly files: ReadonlyMap<string, DescFile>;
  readonly registry: Registry;
}

function indexFiles(services: readonly DescService[]): Index {
  const files = [...withImports(services.map((service) => service.file))];
  return {
    serviceNames: services.map((service) => service.typeName),
    files: new Map(files.map((file) => [file.proto.name, file])),
    registry: createRegistry(...files),
  };
}

/** Files, each followed by what it imports. */
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

/** The file of a service, a message or an enum, or of a method or a field by the name before its last dot. */
function fileOfSymbol({ registry }: Index, name: string): DescFile | undefined {
  return (registry.get(name) ?? registry.get(name.slice(0, name.lastIndexOf('.'))))?.file;
}

function responseTo(index: Index, { messageRequest }: ServerReflectionRequest) {
  switch (messageRequest.case) {
    case 'listServices': {
      const service = index.serviceNames.map((name) => ({ name }));
      return { case: 'listServicesResponse' as const, value: { service } };
    }
    case 'fileByFilename':
      return fileResponse(index.files.get(messageRequest.value));
    case 'fileContainingSymbol':
      return fileResponse(fileOfSymbol(index, messageRequest.value));
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
