import { createRegistry, type DescFile, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Code } from '@connectrpc/connect';
import { ServerReflection, type ServerReflectionRequest } from '@latchkey/proto/grpc/reflection/v1/reflection_pb';
import { type RpcRoute, rpcRoute } from '../route.ts';

/** Server reflection (`grpc.reflection.v1`) for tools like grpcurl. */
export function reflectionRoute(routes: readonly RpcRoute[]): RpcRoute {
  const services = [...routes.map(({ service }) => service), ServerReflection];
  const files = new Set<DescFile>();
  for (const { file } of services) addWithImports(file, files);
  const filesByName = new Map([...files].map((file) => [file.proto.name, file]));
  const registry = createRegistry(...files);
  // Methods and fields are found by the name before the last dot.
  const findSymbol = (name: string) => (registry.get(name) ?? registry.get(name.slice(0, name.lastIndexOf('.'))))?.file;
  const respond = ({ messageRequest: { case: kind, value } }: ServerReflectionRequest) => {
    if (kind === 'listServices') {
      return { case: 'listServicesResponse' as const, value: { service: services.map(({ typeName: name }) => ({ name })) } };
    }
    const file =
      kind === 'fileByFilename' ? filesByName.get(value) : kind === 'fileContainingSymbol' ? findSymbol(value) : undefined;
    if (!file) return { case: 'errorResponse' as const, value: { errorCode: Code.NotFound, errorMessage: 'not found' } };
    const fileDescriptorProto = [...addWithImports(file)].map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto));
    return { case: 'fileDescriptorResponse' as const, value: { fileDescriptorProto } };
  };
  return rpcRoute(ServerReflection, {
    async *serverReflectionInfo(requests) {
      for await (const request of requests) {
        yield { validHost: request.host, originalRequest: request, messageResponse: respond(request) };
      }
    },
  });
}

/** Adds a file, then the files that it imports, which clients need too. */
function addWithImports(file: DescFile, files = new Set<DescFile>()): Set<DescFile> {
  if (files.has(file)) return files;
  files.add(file);
  for (const each of file.dependencies) addWithImports(each, files);
  return files;
}
