import type { Readable } from 'node:stream';
import { errors } from '../errors.ts';

/**
 * The chunks of a stream until its proper end. Unlike a stream's own iterator it ends at once when `signal` aborts, however long the
 * next chunk takes, and leaves the stream open, since whoever sends it is still to be answered.
 *
 * @throws the signal's reason; `upload_interrupted` where the stream broke off, or ended before the message did
 */
export async function* readBody(
  body: Readable & { readonly complete?: boolean },
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  for (;;) {
    signal.throwIfAborted();
    const chunk: Uint8Array | null = body.readableEnded || body.destroyed ? null : body.read();
    if (chunk !== null) yield chunk;
    else if (isBroken(body)) throw errors.upload_interrupted();
    else if (body.readableEnded) break;
    else await nextMove(body, signal);
  }
  // Node says of a request whether all of it came.
  if (body.complete === false) throw errors.upload_interrupted();
}

function isBroken(body: Readable): boolean {
  return body.readableAborted || body.errored !== null || (body.destroyed && !body.readableEnded);
}

/** Resolves when there may be more to read, or to know. */
function nextMove(body: Readable, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const events = ['readable', 'end', 'error', 'close'] as const;
    const done = () => {
      for (const event of events) body.off(event, done);
      signal.removeEventListener('abort', done);
      resolve();
    };
    for (const event of events) body.on(event, done);
    signal.addEventListener('abort', done);
  });
}
