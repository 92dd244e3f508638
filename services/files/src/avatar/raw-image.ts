import type { Readable } from 'node:stream';
import type { FilesContext } from '../context.ts';
import { errors } from '../errors.ts';
import { readBody } from '../storage/upload/upload-body.ts';

/** Longest wait for the whole of an image from the store, in milliseconds. */
const READ_MS = 10_000;

/**
 * What was sent, as it was stored.
 *
 * @throws where it is not there, or the store fails
 */
export async function readRaw(
  { store, avatarLimits }: Pick<FilesContext, 'store' | 'avatarLimits'>,
  key: string,
): Promise<Buffer> {
  const body = await store.read(key);
  if (!body) throw new Error('What was sent is not there any more');
  const timer = setTimeout(() => body.destroy(new Error('The store took too long')), READ_MS);
  try {
    const pieces: Buffer[] = [];
    let byteSize = 0;
    for await (const piece of body as AsyncIterable<Buffer>) {
      byteSize += piece.length;
      if (byteSize > avatarLimits.byteSizeMax) throw new Error('The store gave more than was stored');
      pieces.push(piece);
    }
    return Buffer.concat(pieces, byteSize);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * The bytes that are sent, held to their bounds as they pass.
 *
 * @throws the signal's reason; `avatar_too_large`, `file_empty`, `upload_interrupted`
 */
export async function* receiveRaw(body: Readable, byteSizeMax: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  let byteSize = 0;
  for await (const chunk of readBody(body, signal)) {
    byteSize += chunk.byteLength;
    if (byteSize > byteSizeMax) throw errors.avatar_too_large();
    yield chunk;
  }
  if (byteSize === 0) throw errors.file_empty();
}
