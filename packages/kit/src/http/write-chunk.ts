import type { Writable } from 'node:stream';
import { releaseBytes } from './release-bytes.ts';

/** Chunks written in one turn of the event loop. A burst of downloads would fill all their buffers in one turn. */
const CHUNKS_PER_TURN = 4;

let written = 0;
const waiting: Array<() => void> = [];

/**
 * Writes a chunk of a long body and resolves once the operating system has taken it, then frees the chunk's
 * memory. Bodies take turns, first come, first served. Rejects when the connection ends.
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
