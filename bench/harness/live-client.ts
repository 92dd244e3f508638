import { connect, type Socket } from 'node:net';

export interface LiveClientEvents {
  /** A message has begun to arrive. The part of its text is valid until this returns. */
  onMessage(text: Buffer): void;
  /** The upgrade was rejected with this status and head; 0 without a response. */
  onRejected(status: number, head: string): void;
  onClosed?(): void;
}

const TEXT = 1;
const PING = 9;
const HEAD_END = '\r\n\r\n';
const EMPTY = Buffer.alloc(0);

/** One read buffer for all clients: each has used its bytes before the next one reads. */
const INCOMING = Buffer.allocUnsafe(64 * 1024);

/**
 * A minimal WebSocket client that counts messages: thousands of them leave the CPU to the server
 * that is measured.
 */
export class LiveClient {
  readonly #socket: Socket;
  readonly #events: LiveClientEvents;
  #head = '';
  #isOpen = false;
  /** The beginning of an incomplete frame. */
  #rest: Buffer = EMPTY;
  /** Bytes of the current frame's payload that have not arrived. */
  #left = 0;

  constructor(port: number, request: string, events: LiveClientEvents, localAddress?: string) {
    this.#events = events;
    const callback = (length: number) => {
      this.#read(INCOMING.subarray(0, length));
      return true;
    };
    const address = { port, host: '127.0.0.1', ...(localAddress !== undefined && { localAddress }) };
    this.#socket = connect({ ...address, noDelay: true, onread: { buffer: INCOMING, callback } });
    this.#socket.on('error', () => undefined);
    this.#socket.once('close', () => {
      if (this.#isOpen) events.onClosed?.();
      else events.onRejected(Number(this.#head.slice(9, 12)) || 0, this.#head);
    });
    this.#socket.write(request);
  }

  #read(bytes: Buffer): void {
    if (this.#isOpen) {
      this.#readFrames(bytes);
      return;
    }
    this.#head += bytes.toString('latin1');
    const end = this.#head.indexOf(HEAD_END);
    if (end < 0 || !this.#head.startsWith('HTTP/1.1 101')) return;
    const frames = this.#head.slice(end + HEAD_END.length);
    this.#head = '';
    this.#isOpen = true;
    this.#readFrames(Buffer.from(frames, 'latin1'));
  }

  #readFrames(incoming: Buffer): void {
    const bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, incoming]) : incoming;
    let at = Math.min(this.#left, bytes.length);
    this.#left -= at;
    this.#rest = EMPTY;
    while (at < bytes.length) {
      const payload = payloadAt(bytes, at);
      const opcode = (bytes[at] as number) & 0xf;
      if (!payload || (opcode === PING && payload.end > bytes.length)) {
        this.#rest = Buffer.from(bytes.subarray(at));
        return;
      }
      if (opcode === PING) this.#socket.write(pongOf(bytes.subarray(payload.start, payload.end)));
      else if (opcode === TEXT) this.#events.onMessage(bytes.subarray(payload.start, payload.end));
      this.#left = Math.max(0, payload.end - bytes.length);
      at = payload.end;
    }
  }
}

/** The payload of a server's frame (RFC 6455, section 5.2); undefined without its whole head. */
function payloadAt(bytes: Buffer, at: number): { start: number; end: number } | undefined {
  const length = bytes[at + 1];
  if (length === undefined || (length === 126 && at + 4 > bytes.length)) return undefined;
  if (length > 126) throw new Error('A frame is too long');
  const start = at + (length === 126 ? 4 : 2);
  return { start, end: start + (length === 126 ? bytes.readUInt16BE(at + 2) : length) };
}

/** The pong for a ping, masked with zeros. */
function pongOf(payload: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0x8a, 0x80 | payload.length, 0, 0, 0, 0]), payload]);
}
