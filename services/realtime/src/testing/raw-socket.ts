import { eventually } from '@latchkey/testkit/eventually';
import { openRawClient } from '@latchkey/testkit/network/raw-client';
import * as ws from 'ws';

/** The library exports it without a type. */
const { Sender } = ws as unknown as { Sender: { frame(data: Buffer, options: object): Buffer[] } };

/** An HTTP response as it came over the wire, with lower-case header names. */
export interface RawResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Differences of a frame from a well-formed one. */
interface FrameShape {
  readonly isFinal?: boolean;
  readonly isMasked?: boolean;
  readonly hasReservedBit?: boolean;
}

export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** An upgrade request, with headers replaced, repeated (an array) or removed (undefined). */
export function upgradeRequest(key?: string, headers: Headers = {}, requestLine = 'GET /api/v1/realtime HTTP/1.1'): string {
  const all: Headers = {
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

/** A frame of a client. */
export function clientFrame(opcode: number, payload: Buffer | string = '', shape: FrameShape = {}): Buffer {
  const { isFinal: fin = true, isMasked: mask = true, hasReservedBit: rsv1 = false } = shape;
  return Buffer.concat(Sender.frame(Buffer.from(payload), { opcode, fin, mask, rsv1, readOnly: true }));
}

export function closeFrame(code: number): Buffer {
  return clientFrame(OPCODE.close, Buffer.from([code >> 8, code & 0xff]));
}

export type RawSocket = Awaited<ReturnType<typeof openRawSocket>>;

/** A client of the endpoint without a library, until the test ends. It sends these bytes first. */
export async function openRawSocket(port: number, ...bytes: Array<string | Buffer>) {
  const client = await openRawClient(port);
  const send = (...frames: Array<string | Buffer>) =>
    void client.socket.write(Buffer.concat(frames.map((part) => Buffer.from(part))));
  client.socket.once('end', () => client.socket.end());
  send(...bytes);
  /** The frames that have come whole. */
  const frames = () => {
    const received = client.received();
    return [...readFrames(Buffer.from(received.slice(received.indexOf('\r\n\r\n') + 4), 'latin1'))];
  };
  const payloads = (opcode: number): string[] =>
    frames().flatMap((frame) => (frame.opcode === opcode ? String(frame.payload) : []));
  return {
    client,
    send,
    frames,
    payloads,
    /** The response to the request, with its whole body. */
    response: () => eventually(() => readResponse(client.received()) ?? false) as Promise<RawResponse>,
    /** The first frame. */
    async ready(): Promise<Record<string, unknown>> {
      return JSON.parse(String(await eventually(() => payloads(OPCODE.text)[0] ?? false)));
    },
    /** The code that the node closed with, once it has. */
    async closeCode(): Promise<number> {
      const frame = await eventually(() => frames().find(({ opcode }) => opcode === OPCODE.close) ?? false);
      return frame && frame.payload.byteLength > 0 ? frame.payload.readUInt16BE() : 1005;
    },
  };
}

function readResponse(text: string): RawResponse | undefined {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [statusLine = '', ...lines] = text.slice(0, end).split('\r\n');
  const headers = Object.fromEntries(lines.map((line) => [line.split(':', 1)[0]?.toLowerCase(), line.replace(/^[^:]*: */, '')]));
  const size = Number(headers['content-length'] ?? 0);
  const body = text.slice(end + 4, end + 4 + size);
  if (body.length < size) return undefined;
  return { status: Number(statusLine.split(' ')[1]), headers, body: size > 0 ? JSON.parse(body) : {} };
}

function* readFrames(bytes: Buffer) {
  for (let at = 0; at + 2 <= bytes.byteLength; ) {
    const short = (bytes[at + 1] as number) & 0x7f;
    const head = short < 126 ? 2 : 4;
    if (at + head > bytes.byteLength) return;
    const length = short < 126 ? short : bytes.readUInt16BE(at + 2);
    if (at + head + length > bytes.byteLength) return;
    yield { opcode: (bytes[at] as number) & 0x0f, payload: bytes.subarray(at + head, at + head + length) };
    at += head + length;
  }
}
