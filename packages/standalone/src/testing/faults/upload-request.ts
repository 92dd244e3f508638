import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { checkAnswer } from '../api.ts';
import { parseAnswers, type RawAnswer } from '../raw-request.ts';
import { type Outcome, Violation } from './outcome.ts';

/** How far the body of an upload gets, and how its sender goes away then. */
export interface Cut {
  readonly after: 'nothing' | 'half' | 'all but a byte' | 'all but the end mark';
  /** Also something else that ends the connection. */
  readonly by: 'FIN' | 'RST' | (() => unknown);
  /** What is waited for before. */
  readonly once?: () => Promise<unknown>;
}

/** An upload, byte by byte. */
export interface UploadRequest {
  readonly authorization: string;
  readonly applicationId: string;
  readonly fileName: string;
  readonly bytes: Buffer;
  readonly chunked: boolean;
  /** SHA-256 that the sender says the bytes have. */
  readonly digest?: Buffer | undefined;
  readonly cut?: Cut | undefined;
  /** Pieces that the body is sent in, and the pause before each in milliseconds. */
  readonly pieces?: number;
  readonly pauseMs?: number;
}

/** Longest time from the last byte that could be sent to the answer or the end of the connection, in milliseconds. */
const ANSWER_MS_MAX = 40_000;

/**
 * Uploads on a connection of its own, and may go away on the way.
 *
 * @throws {Violation} when neither an answer nor the end of the connection comes for long
 */
export async function sendUpload(port: number, upload: UploadRequest): Promise<Outcome> {
  const exchange = new Exchange(port);
  const body = cutBody(upload);
  await exchange.write(Buffer.from(headOf(port, upload), 'latin1'));
  const { pieces = 1, pauseMs = 0, chunked } = upload;
  const size = Math.max(1, Math.ceil(body.length / pieces));
  for (let start = 0; start < body.length && !exchange.isOver; start += size) {
    if (pauseMs > 0) await pause(pauseMs);
    const piece = body.subarray(start, start + size);
    // The server may have all as soon as the last piece is on its way.
    exchange.wasWhole = !upload.cut && !chunked && start + size >= body.length;
    await exchange.write(chunked ? asChunk(piece) : piece);
  }
  if (upload.cut) {
    await upload.cut.once?.();
    return exchange.leave(upload.cut.by);
  }
  exchange.wasWhole = !exchange.isOver;
  if (chunked) await exchange.write(Buffer.from('0\r\n\r\n'));
  return exchange.answer();
}

/** One connection and the answer on it. */
class Exchange {
  wasWhole = false;
  #received = Buffer.alloc(0);
  readonly #socket: Socket;
  readonly #over: Promise<RawAnswer | undefined>;
  #isOver = false;
  #why = 'closed';

  constructor(port: number) {
    this.#socket = connect(port, '127.0.0.1');
    this.#over = new Promise((resolve) => {
      const end = () => {
        this.#isOver = true;
        resolve(parseAnswers(this.#received)[0]);
      };
      this.#socket.on('data', (chunk: Buffer) => {
        this.#received = Buffer.concat([this.#received, chunk]);
        if (parseAnswers(this.#received).length > 0) end();
      });
      this.#socket.on('close', end).on('error', (err: NodeJS.ErrnoException) => {
        this.#why = err.code ?? err.message;
      });
    });
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Resolves when the system has taken the bytes, or will not any more. */
  async write(bytes: Buffer): Promise<void> {
    if (this.#isOver || bytes.length === 0) return;
    const written = new Promise<void>((resolve) => this.#socket.write(bytes, () => resolve()));
    await Promise.race([written, this.#over]);
  }

  /** Goes away, after what was sent. */
  async leave(by: Cut['by']): Promise<Outcome> {
    if (by === 'RST') this.#socket.resetAndDestroy();
    else if (by === 'FIN') this.#socket.end();
    else await by();
    return this.answer();
  }

  async answer(): Promise<Outcome> {
    const timer = setTimeout(() => this.#socket.destroy(new Error('TIMEOUT')), ANSWER_MS_MAX);
    const answer = await this.#over;
    clearTimeout(timer);
    this.#socket.destroy();
    if (this.#why === 'TIMEOUT') throw new Violation(`An upload was not answered within ${ANSWER_MS_MAX} ms`);
    if (!answer) return { lost: this.#why, wasWhole: this.wasWhole };
    return checkAnswer('POST upload-file', { ...answer, headers: new Headers(answer.headers) }, true);
  }
}

function headOf(port: number, upload: UploadRequest): string {
  const query = new URLSearchParams({ applicationId: upload.applicationId, fileName: upload.fileName });
  const lines = [
    `POST /api/v1/panel/upload-file?${query} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    `Authorization: ${upload.authorization}`,
    'Content-Type: application/octet-stream',
    upload.chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${upload.bytes.length}`,
    ...(upload.digest ? [`Content-Digest: sha-256=:${upload.digest.toString('base64')}:`] : []),
  ];
  return `${lines.join('\r\n')}\r\n\r\n`;
}

function cutBody({ bytes, cut }: UploadRequest): Buffer {
  if (cut?.after === 'nothing') return Buffer.alloc(0);
  if (cut?.after === 'half') return bytes.subarray(0, bytes.length >> 1);
  return cut?.after === 'all but a byte' ? bytes.subarray(0, -1) : bytes;
}

function asChunk(piece: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]);
}
