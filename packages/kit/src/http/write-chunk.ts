import type { Writable } from 'node:stream';
import { releaseBytes } from './release-bytes.ts';

/**
 * Chunks that one process writes in one turn of the event loop. A burst of downloads would otherwise fill the buffers of all their connections in one
 * turn, megabytes each, and every other request would wait for that.
 */
const CHUNKS_PER_TURN = 4;

let written = 0;
const waiting: Array<() => void> = [];

/**
 * Writes a chunk of a long body and resolves once the operating system has taken all of it, so that no other chunk waits in this process. Then gives
 * the memory of the chunk back: nothing else may use it. Bodies take turns, first come, first served.
 *
 * @throws what ended the connection
 */
export async function writeChunk(target: Writable, chunk: Uint8Array): Promise<void> {
  await nextTurn();
  await new Promise<void>((resolve, reject) => {
    // Node may never report a write that was under way when the connection closed.
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

/** Resolves in this turn of the event loop where chunks are left in it, else in a later one. */
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
