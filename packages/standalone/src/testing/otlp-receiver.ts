import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';

/** A span as a collector gets it. */
export interface ReceivedSpan {
  /** `service.name` of the resource. */
  readonly service: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the first of a trace. */
  readonly parentId: string;
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  /** Traces that it links to. */
  readonly links: readonly string[];
}

/** A collector of OpenTelemetry: OTLP over HTTP with protobuf. */
export interface OtlpReceiver {
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  /** Everything that was sent, as it came. */
  readonly bodies: readonly Buffer[];
  close(): void;
}

/** Starts a collector that keeps what it is sent, where it answers at all. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const bodies: Buffer[] = [];
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    const isRight = req.url === '/v1/traces' && req.headers['content-type'] === 'application/x-protobuf';
    if (isRight) {
      bodies.push(Buffer.concat(chunks));
      spans.push(...readSpans(Buffer.concat(chunks)));
    }
    res.writeHead(isRight ? 200 : 400, { 'content-type': 'application/x-protobuf' }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    bodies,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** The values of a message's fields by their numbers: bytes of those that have a length, and nothing of others. */
function fieldsOf(bytes: Uint8Array): Map<number, Uint8Array[]> {
  const reader = new BinaryReader(bytes);
  const fields = new Map<number, Uint8Array[]>();
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    if (type !== WireType.LengthDelimited) reader.skip(type);
    else fields.set(number, [...(fields.get(number) ?? []), reader.bytes()]);
  }
  return fields;
}

const NONE = new Uint8Array();
const manyOf = (bytes: Uint8Array, number: number) => fieldsOf(bytes).get(number) ?? [];
const oneOf = (bytes: Uint8Array, number: number) => manyOf(bytes, number)[0] ?? NONE;
const textOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('utf8');
const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

/** Texts alone; see `opentelemetry/proto/common/v1/common.proto`. */
function attributesOf(pairs: readonly Uint8Array[]): Record<string, string> {
  return Object.fromEntries(pairs.map((pair) => [textOf(oneOf(pair, 1)), textOf(oneOf(oneOf(pair, 2), 1))]));
}

/** An `ExportTraceServiceRequest` (`opentelemetry/proto/collector/trace/v1/trace_service.proto`). */
function readSpans(request: Uint8Array): ReceivedSpan[] {
  return manyOf(request, 1).flatMap((ofResource) => {
    const service = attributesOf(manyOf(oneOf(ofResource, 1), 1))['service.name'] ?? '';
    return manyOf(ofResource, 2).flatMap((ofScope) => manyOf(ofScope, 2).map((span) => readSpan(service, span)));
  });
}

function readSpan(service: string, span: Uint8Array): ReceivedSpan {
  return {
    service,
    traceId: hexOf(oneOf(span, 1)),
    spanId: hexOf(oneOf(span, 2)),
    parentId: hexOf(oneOf(span, 4)),
    name: textOf(oneOf(span, 5)),
    attributes: attributesOf(manyOf(span, 9)),
    links: manyOf(span, 13).map((link) => hexOf(oneOf(link, 1))),
  };
}
