import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient, type RawClient } from '@latchkey/testkit/raw-client';
import { onTestFinished } from 'vitest';

/** An HTTP answer as it came over the wire. */
export interface RawAnswer {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A frame as it came over the wire. */
export interface RawFrame {
  readonly opcode: number;
  readonly payload: Buffer;
}

/** What a frame may have otherwise than a client's library would send it. */
export interface FrameShape {
  readonly isFinal?: boolean;
  readonly isMasked?: boolean;
  /** Reserved bits, as they stand in the first byte. */
  readonly reservedBits?: number;
  /** Announces so many bytes, whatever the payload has. */
  readonly announcedBytes?: number;
}

export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

/** A header block that upgrades, with those headers replaced, repeated (an array) or left out (undefined) that are given. */
export function upgradeRequest(
  key: string | undefined,
  headers: Readonly<Record<string, string | readonly string[] | undefined>> = {},
  requestLine = 'GET /api/v1/realtime HTTP/1.1',
): string {
  const all: typeof headers = {
    Host: 'localhost',
    Upgrade: 'websocket',
    Connection: 'Upgrade',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Version': '13',
    Authorization: key === undefined ? undefined : `Bearer ${key}`,
    ...headers,
  };
  const lines = Object.entries(all).flatMap(([name, value]) => [value ?? []].flat().map((text) => `${name}: ${text}`));
  return [requestLine, ...lines, '', ''].join('\r\n');
}

/** The bytes of a frame of a client; it is well-formed unless its shape says otherwise. */
export function clientFrame(opcode: number, payload: Buffer | string = '', shape: FrameShape = {}): Buffer {
  const data = Buffer.from(payload);
  const { isFinal = true, isMasked = true, reservedBits = 0, announcedBytes = data.byteLength } = shape;
  const length = announcedBytes < 126 ? [announcedBytes] : announcedBytes < 65_536 ? [126, 0, 0] : [127, 0, 0, 0, 0, 0, 0, 0, 0];
  const head = Buffer.from([(isFinal ? 0x80 : 0) | reservedBits | opcode, ...length]);
  if (head.byteLength === 4) head.writeUInt16BE(announcedBytes, 2);
  if (head.byteLength === 10) head.writeBigUInt64BE(BigInt(announcedBytes), 2);
  if (!isMasked) return Buffer.concat([head, data]);
  head[1] = (head[1] as number) | 0x80;
  const mask = Buffer.from([1, 2, 3, 4]);
  return Buffer.concat([head, mask, data.map((byte, i) => byte ^ (mask[i % 4] as number))]);
}

/** A close frame with a code. */
export function closeFrame(code: number, reason = ''): Buffer {
  const payload = Buffer.alloc(2);
  payload.writeUInt16BE(code);
  return clientFrame(OPCODE.close, Buffer.concat([payload, Buffer.from(reason)]));
}

/** A client of the endpoint without a library, until the test ends. */
export class RawSocket {
  readonly client: RawClient;

  constructor(client: RawClient) {
    this.client = client;
  }

  /** Opens a connection and sends what is given. */
  static async open(port: number, ...bytes: Array<string | Buffer>): Promise<RawSocket> {
    const client = await openRawClient(port);
    onTestFinished(() => void client.socket.destroy());
    client.socket.once('end', () => client.socket.end());
    client.socket.write(Buffer.concat(bytes.map((part) => Buffer.from(part))));
    return new RawSocket(client);
  }

  /** Sends frames together. */
  send(...frames: Buffer[]): void {
    this.client.socket.write(Buffer.concat(frames));
  }

  /** The answer to the request, with its whole body. */
  answer(): Promise<RawAnswer> {
    return eventually(() => readAnswer(this.client.received()) ?? fail('no answer yet'));
  }

  /** The frames that have come whole. */
  frames(): RawFrame[] {
    const received = this.client.received();
    return [...readFrames(Buffer.from(received.slice(received.indexOf('\r\n\r\n') + 4), 'latin1'))];
  }

  /** The first frame, which says how the application stands. */
  async ready(): Promise<Record<string, unknown>> {
    const { payload } = await eventually(() => this.frames()[0] ?? fail('no frame yet'));
    return JSON.parse(String(payload));
  }

  /** The code that the other side closed with, once it has. */
  async closeCode(): Promise<number> {
    const isClose = ({ opcode }: RawFrame) => opcode === OPCODE.close;
    const { payload } = await eventually(() => this.frames().find(isClose) ?? fail('not closed yet'));
    return payload.byteLength === 0 ? 1005 : payload.readUInt16BE();
  }
}

function fail(message: string): never {
  throw new Error(message);
}

function readAnswer(text: string): RawAnswer | undefined {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [statusLine = '', ...lines] = text.slice(0, end).split('\r\n');
  const headers = Object.fromEntries(lines.map((line) => [line.split(':', 1)[0]?.toLowerCase(), line.replace(/^[^:]*: */, '')]));
  const size = Number(headers['content-length'] ?? 0);
  const body = text.slice(end + 4, end + 4 + size);
  if (body.length < size) return undefined;
  return { status: Number(statusLine.split(' ')[1]), headers, body: size > 0 ? JSON.parse(body) : {} };
}

function* readFrames(bytes: Buffer): Generator<RawFrame> {
  for (let at = 0; at + 2 <= bytes.byteLength; ) {
    const short = (bytes[at + 1] as number) & 0x7f;
    const head = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (at + head > bytes.byteLength) return;
    const length = short < 126 ? short : short === 126 ? bytes.readUInt16BE(at + 2) : Number(bytes.readBigUInt64BE(at + 2));
    if (at + head + length > bytes.byteLength) return;
    yield { opcode: (bytes[at] as number) & 0x0f, payload: bytes.subarray(at + head, at + head + length) };
    at += head + length;
  }
}
