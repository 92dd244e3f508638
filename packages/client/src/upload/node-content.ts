import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { CheckSize, Content } from './content.ts';
import { sendBytes } from './node-send.ts';

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
    return prepareRepeatable({ byteSize: source.byteLength, chunks }, check, signal);
  }
  if (source instanceof Blob) {
    const { name } = source as { readonly name?: unknown };
    const chunks = (from: number, to: number) => source.slice(from, to).stream() as AsyncIterable<Uint8Array>;
    return prepareRepeatable({ ...(typeof name === 'string' && { name }), byteSize: source.size, chunks }, check, signal);
  }
  return streamContent(source as AsyncIterable<Uint8Array>);
}

async function prepareFile(path: string | URL, check: CheckSize, signal: AbortSignal | undefined): Promise<Content> {
  const handle = await open(path);
  const close = () => handle.close();
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) throw new TypeError(`${path} is not a file`);
    const name = basename(path instanceof URL ? fileURLToPath(path) : path);
    const chunks = (from: number, to: number) => readFileChunks(handle, from, to);
    return { ...(await prepareRepeatable({ name, byteSize: stats.size, chunks }, check, signal)), close };
  } catch (err) {
    await close();
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

/** Bytes that can be read from anywhere, and again. */
interface RandomAccess {
  readonly name?: string;
  readonly byteSize: number;
  chunks(from: number, to: number): AsyncIterable<Uint8Array>;
}

async function prepareRepeatable(bytes: RandomAccess, check: CheckSize, signal: AbortSignal | undefined): Promise<Content> {
  const { name, byteSize } = bytes;
  await check(byteSize, name);
  const hash = createHash('sha256');
  for await (const chunk of bytes.chunks(0, byteSize)) {
    signal?.throwIfAborted();
    hash.update(chunk);
  }
  return {
    name,
    byteSize,
    sha256: hash.digest(),
    send: (http, request, options, from = 0, to = byteSize) =>
      sendBytes(http, request, { byteSize: to - from, chunks: () => bytes.chunks(from, to) }, options),
  };
}

/** A stream is hashed while it is sent. */
function streamContent(stream: AsyncIterable<Uint8Array>): Content {
  return {
    byteSize: undefined,
    sha256: undefined,
    async send(http, request, options) {
      const hash = createHash('sha256');
      const chunks = async function* () {
        for await (const chunk of stream) {
          hash.update(chunk);
          yield chunk;
        }
      };
      const success = await sendBytes(http, request, { byteSize: undefined, chunks }, options);
      this.sha256 = hash.digest();
      return success;
    },
  };
}
