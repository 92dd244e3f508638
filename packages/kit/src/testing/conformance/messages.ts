import { readFileSync } from 'node:fs';
import {
  create,
  createFileRegistry,
  type DescMessage,
  fromBinary,
  type Message,
  type Registry,
  toBinary,
} from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';

const PACKAGE = 'connectrpc.conformance.v1';

/** A message of the suite. Its types are read at run time, so that no code is generated for them. */
// biome-ignore lint/suspicious/noExplicitAny: the fields are those of the suite's .proto files.
export type SuiteMessage = Message & any;

/** Types of the suite, from the file that `buf build` wrote. */
export const registry: Registry = createFileRegistry(
  fromBinary(FileDescriptorSetSchema, readFileSync(process.env.CONFORMANCE_TYPES ?? '')),
);

export function suiteType(name: string): DescMessage {
  const type = registry.getMessage(`${PACKAGE}.${name}`);
  if (!type) throw new Error(`The conformance suite has no message ${name}`);
  return type;
}

export function suiteService() {
  const service = registry.getService(`${PACKAGE}.ConformanceService`);
  if (!service) throw new Error('The conformance suite has no service');
  return service;
}

/** The messages on standard input. The runner writes the length of each before it. */
export async function* readMessages(name: string): AsyncGenerator<SuiteMessage> {
  let rest = Buffer.alloc(0);
  for await (const chunk of process.stdin) {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32BE()) {
      const end = 4 + rest.readUInt32BE();
      yield fromBinary(suiteType(name), rest.subarray(4, end));
      rest = rest.subarray(end);
    }
  }
}

export function writeMessage(name: string, fields: Record<string, unknown>): void {
  const body = toBinary(suiteType(name), create(suiteType(name), fields));
  const size = Buffer.alloc(4);
  size.writeUInt32BE(body.byteLength);
  process.stdout.write(Buffer.concat([size, body]));
}
