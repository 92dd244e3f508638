import type { Writable } from 'node:stream';

/** Chunks written in one turn of the event loop: a burst of downloads would fill all buffers. */
const CHUNKS_PER_TURN = 4;

let written = 0;
const waiting: Array<() => void> = [];

/**
 * Writes a chunk of a long body and resolves once the operating system has taken it, then frees the
 * chunk's memory. Bodies take turns. Rejects when the connection ends.
 */
export async function writeChunk(target: Writable, chunk: Uint8Array): Promise<void> {
  await nextTurn();
  await new Promise<void>((resolve, reject) => {
    // Node may never report a write under way when the connection closes.
    const onClose = () => reject(new Error('The connection was closed'));
    target.once('close', onClose);
    target.write(chunk, (err) => {
      target.off('close', onClose);
      if (err) reject(err);
      else resolve();
    });
  });
  releaseBytes(chunk);
}

/** Waits for a later turn of the event loop if this one has no chunks left. */
function nextTurn(): Promise<void> | undefined {
  if (written === 0) setImmediate(beginTurn);
  written += 1;
  return written > CHUNKS_PER_TURN ? new Promise((resolve) => waiting.push(resolve)) : undefined;
}

function beginTurn(): void {
  const next = waiting.splice(0, CHUNKS_PER_TURN);
  written = next.length + waiting.length;
  if (written > 0) setImmediate(beginTurn);
  for (const begin of next) begin();
}

/**
 * Frees the memory of a chunk that is not used any more, if nothing else shares it. V8 would
 * collect the whole heap again and again for the 64 KiB chunks that Node reads: half the cost of an
 * upload.
 */
export function releaseBytes({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
