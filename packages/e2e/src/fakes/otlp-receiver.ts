import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';

/** A span as a collector receives it. */
export interface ReceivedSpan {
  /** `service.name` of the resource. */
  readonly service: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the root of a trace. */
  readonly parentId: string;
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  /** Traces that it links to. */
  readonly links: readonly string[];
}

/** An OpenTelemetry collector: OTLP over HTTP with protobuf. */
export interface OtlpReceiver {
  readonly url: string;
  close(): void;
}

/** Starts a collector. A GET returns the requests that it has received since `from`. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const bodies: Buffer[] = [];
  const server = createServer(async (req, res) => {
    if (req.method === 'GET') {
      const from = Number(new URL(req.url ?? '', 'http://x').searchParams.get('from'));
      res.writeHead(200, { 'x-count': bodies.length }).end(Buffer.concat(bodies.slice(from)));
      return;
    }
    bodies.push(Buffer.concat((await req.toArray()) as Buffer[]));
    res.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

/** Reads what a collector has received since the first time. */
export class OtlpReader {
  readonly spans: ReceivedSpan[] = [];
  /** All that was received, as text to search. */
  sent = '';
  readonly #url: string;
  #next: number | undefined;

  constructor(url: string) {
    this.#url = url;
  }

  async read(): Promise<void> {
    const response = await fetch(`${this.#url}?from=${this.#next ?? Number.MAX_SAFE_INTEGER}`);
    this.#next = Number(response.headers.get('x-count'));
    // One after the other, messages are one message.
    const bytes = Buffer.from(await response.arrayBuffer());
    this.sent += bytes.toString('latin1');
    this.spans.push(...readSpans(bytes));
  }
}

/** The length-delimited values of a message by field number. */
function manyOf(bytes: Uint8Array, field: number): Uint8Array[] {
  const reader = new BinaryReader(bytes);
  const values: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    if (type !== WireType.LengthDelimited) reader.skip(type);
    else if (number === field) values.push(reader.bytes());
    else reader.bytes();
  }
  return values;
}

const oneOf = (bytes: Uint8Array, field: number) => Buffer.from(manyOf(bytes, field)[0] ?? []);

/** Attributes with text values; see `opentelemetry/proto/common/v1/common.proto`. */
const attributesOf = (pairs: readonly Uint8Array[]): Record<string, string> =>
  Object.fromEntries(pairs.map((pair) => [oneOf(pair, 1).toString(), oneOf(oneOf(pair, 2), 1).toString()]));

/** The spans of an `ExportTraceServiceRequest` (`trace_service.proto`). */
function readSpans(request: Uint8Array): ReceivedSpan[] {
  return manyOf(request, 1).flatMap((resource) => {
    const service = attributesOf(manyOf(oneOf(resource, 1), 1))['service.name'] ?? '';
    const spans = manyOf(resource, 2).flatMap((scope) => manyOf(scope, 2));
    return spans.map((span) => ({
      service,
      traceId: oneOf(span, 1).toString('hex'),
      spanId: oneOf(span, 2).toString('hex'),
      parentId: oneOf(span, 4).toString('hex'),
      name: oneOf(span, 5).toString(),
      attributes: attributesOf(manyOf(span, 9)),
      links: manyOf(span, 13).map((link) => oneOf(link, 1).toString('hex')),
    }));
  });
}
