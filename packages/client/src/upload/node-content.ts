import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Http, HttpRequest } from '../http/http.ts';
import { sendBytes } from './node-send.ts';
import type { CheckSize, Content, ContentOptions, Parts, Sent } from './upload.ts';

/** A path, a `file:` URL, bytes, a `Blob`, or a stream. */
export type NodeSource = string | URL | Uint8Array | Blob | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

/** Few calls of the system for a large file, and little memory. */
const BUFFER_BYTES = 2 * 1024 * 1024;

export async function prepareContent(source: NodeSource, check: CheckSize, signal: AbortSignal | undefined): Promise<Content> {
  if (typeof source === 'string' || source instanceof URL) return prepareFile(source, check, signal);
  if (source instanceof Uint8Array) {
    const chunks = async function* (from: number, to: number) {
      yield source.subarray(from, to);
    };
    await check(source.byteLength, undefined);
    return prepareRepeatable({ byteSize: source.byteLength, chunks }, signal);
  }
  if (source instanceof Blob) {
    const { name: given } = source as { readonly name?: unknown };
    const name = typeof given === 'string' ? given : undefined;
    await check(source.size, name);
    const bytes = {
      byteSize: source.size,
      chunks: (from: number, to: number) =>
        (to - from === source.size ? source : source.slice(from, to)).stream() as AsyncIterable<Uint8Array>,
    };
    return prepareRepeatable(bytes, signal, { name });
  }
  return streamContent(source as AsyncIterable<Uint8Array>);
}

async function prepareFile(path: string | URL, check: CheckSize, signal: AbortSignal | undefined): Promise<Content> {
  const handle = await open(path);
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) throw new TypeError(`${path} is not a file`);
    const name = basename(path instanceof URL ? fileURLToPath(path) : path);
    await check(stats.size, name);
    const bytes = { byteSize: stats.size, chunks: (from: number, to: number) => readFileChunks(handle, from, to) };
    return await prepareRepeatable(bytes, signal, { name, close: () => handle.close() });
  } catch (err) {
    await handle.close();
    throw err;
  }
}

/** Reads a part of a file into one buffer. */
async function* readFileChunks(handle: FileHandle, from: number, to: number): AsyncGenerator<Uint8Array, void> {
  const buffer = Buffer.allocUnsafeSlow(Math.max(1, Math.min(BUFFER_BYTES, to - from)));
  for (let position = from; position < to; ) {
    const length = Math.min(buffer.length, to - position);
    const { bytesRead } = await handle.read(buffer, 0, length, position);
    if (bytesRead === 0) throw new Error('The file became shorter while it was uploaded');
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

interface Facts {
  readonly name?: string | undefined;
  readonly close?: () => Promise<void>;
}

/** Bytes that can be read from anywhere, and again. */
interface RandomAccess {
  readonly byteSize: number;
  chunks(from: number, to: number): AsyncIterable<Uint8Array>;
}

async function prepareRepeatable(bytes: RandomAccess, signal: AbortSignal | undefined, facts: Facts = {}): Promise<Content> {
  const { byteSize } = bytes;
  const hash = createHash('sha256');
  for await (const chunk of bytes.chunks(0, byteSize)) {
    signal?.throwIfAborted();
    hash.update(chunk);
  }
  const sha256 = hash.digest();
  const send: Parts['send'] = (http, request, options, from, to) =>
    sendBytes(http, request, { byteSize: to - from, chunks: () => bytes.chunks(from, to) }, options);
  return {
    name: facts.name,
    sha256,
    repeatable: true,
    send: async (http, request, options) => ({ success: await send(http, request, options, 0, byteSize) }),
    parts: { byteSize, sha256, send },
    close: facts.close ?? (async () => undefined),
  };
}

/** A stream is hashed while it is sent. */
function streamContent(stream: AsyncIterable<Uint8Array>): Content {
  return {
    name: undefined,
    sha256: undefined,
    repeatable: false,
    async send(http: Http, request: HttpRequest, options: ContentOptions): Promise<Sent> {
      const hash = createHash('sha256');
      const chunks = async function* () {
        for await (const chunk of stream) {
          hash.update(chunk);
          yield chunk;
        }
      };
      const success = await sendBytes(http, request, { byteSize: undefined, chunks }, options);
      return { success, sha256: hash.digest() };
    },
    close: async () => undefined,
  };
}
