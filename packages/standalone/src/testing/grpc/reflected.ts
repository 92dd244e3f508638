import { create, createFileRegistry, type DescService, fromBinary, type Message, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { Client, Metadata } from '@grpc/grpc-js';
import { ServerReflection } from '@latchkey/proto/grpc/reflection/v1/reflection_pb';
import { SERVICE_CREDENTIAL } from '../instance.ts';
import type { GrpcAddress } from './callers.ts';
import { pathOf } from './method-path.ts';

type Ask = { case: 'listServices' | 'fileContainingSymbol'; value: string };

/** Services of a process with all of their methods, read by reflection as tools do. */
export async function reflectServices(address: GrpcAddress): Promise<DescService[]> {
  const client = new Client(address.grpc, address.credentials);
  try {
    const [list] = await ask(client, [{ case: 'listServices', value: '' }]);
    if (list?.messageResponse.case !== 'listServicesResponse') throw new Error('services are not listed');
    const names = list.messageResponse.value.service.map(({ name }) => name);
    const answers = await ask(
      client,
      names.map((value) => ({ case: 'fileContainingSymbol', value })),
    );
    const files = new Map<string, Uint8Array>();
    for (const { messageResponse } of answers) {
      if (messageResponse.case !== 'fileDescriptorResponse') throw new Error('a file is not there');
      for (const bytes of messageResponse.value.fileDescriptorProto)
        files.set(fromBinary(FileDescriptorProtoSchema, bytes).name, bytes);
    }
    const file = [...files.values()].map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
    const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: inOrder(file) }));
    return names.map((name) => registry.getService(name) as DescService);
  } finally {
    client.close();
  }
}

/** Files after those that they import, as a set of them has to be. */
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

function ask(client: Client, asks: readonly Ask[]) {
  const method = ServerReflection.method.serverReflectionInfo;
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${SERVICE_CREDENTIAL}`);
  const call = client.makeBidiStreamRequest(
    pathOf(method),
    (request: Message) => Buffer.from(toBinary(method.input, request as never)),
    (bytes: Buffer) => fromBinary(method.output, bytes),
    metadata,
  );
  for (const messageRequest of asks) call.write(create(method.input, { messageRequest }));
  call.end();
  return call.toArray() as Promise<Array<ReturnType<typeof fromBinary<typeof method.output>>>>;
}
