import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Content } from './content.ts';
import { sendBytes } from './node-send.ts';

/** A path, a `file:` URL, bytes, a `Blob`, or a stream. */
export type NodeSource = string | URL | Uint8Array | Blob | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

/** Few calls of the system for a large file, and little memory. */
const BUFFER_BYTES = 2 * 1024 * 1024;

export async function openContent(source: NodeSource): Promise<Content> {
  if (typeof source === 'string' || source instanceof URL) return openFile(source);
  if (source instanceof Uint8Array)
    return createContent(source.byteLength, async function* (from, to) {
      yield source.subarray(from, to);
    });
  if (!(source instanceof Blob)) return createStreamContent(source as AsyncIterable<Uint8Array>);
  const { name } = source as { readonly name?: unknown };
  const readChunks: ReadChunks = (from, to) => source.slice(from, to).stream() as AsyncIterable<Uint8Array>;
  return { ...createContent(source.size, readChunks), name: typeof name === 'string' ? name : undefined };
}

async function openFile(path: string | URL): Promise<Content> {
  const handle = await open(path);
  const close = () => handle.close();
  const stats = await handle.stat();
  if (!stats.isFile()) {
    await close();
    throw new TypeError(`${path} is not a file`);
  }
  const name = basename(path instanceof URL ? fileURLToPath(path) : path);
  return { ...createContent(stats.size, (from, to) => readFileChunks(handle, from, to)), name, close };
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

/** Reads bytes from anywhere, and again. */
type ReadChunks = (from: number, to: number) => AsyncIterable<Uint8Array>;

const createContent = (byteSize: number, readChunks: ReadChunks): Content => ({
  byteSize,
  async hash(signal) {
    const hash = createHash('sha256');
    for await (const chunk of readChunks(0, byteSize)) {
      signal?.throwIfAborted();
      hash.update(chunk);
    }
    this.sha256 = hash.digest();
  },
  send: (http, request, options, from = 0, to = byteSize) =>
    sendBytes(http, request, { byteSize: to - from, chunks: () => readChunks(from, to) }, options),
});

const createStreamContent = (stream: AsyncIterable<Uint8Array>): Content => ({
  byteSize: undefined,
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
});
