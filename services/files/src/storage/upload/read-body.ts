import { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { releaseBytes } from '@latchkey/kit/http/release-bytes';
import { errors } from '../../errors.ts';
import { bytesReceived } from '../../files-metrics.ts';

/**
 * The chunks of a stream until its proper end. Unlike a stream's own iterator it ends at once when `signal` aborts, however long the
 * next chunk takes, and leaves the stream open, since whoever sends it is still to be answered. A chunk of a request is gone once the next is
 * asked for.
 *
 * @throws the signal's reason; `upload_interrupted` where the stream broke off, or ended before the message did
 */
export async function* readBody(
  body: Readable & { readonly complete?: boolean },
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let wake = () => {};
  const onData = (chunk: Uint8Array) => {
    chunks.push(chunk);
    body.pause();
    wake();
  };
  const onEnd = () => wake();
  const endings = ['end', 'error', 'close'] as const;
  for (const event of endings) body.on(event, onEnd);
  signal.addEventListener('abort', onEnd);
  body.on('data', onData);
  try {
    for (;;) {
      signal.throwIfAborted();
      const chunk = chunks.shift();
      if (chunk) {
        bytesReceived.add(chunk.byteLength);
        yield chunk;
        // What is read of other streams may be somebody's.
        if (body instanceof IncomingMessage) releaseBytes(chunk);
      } else if (isBroken(body)) throw errors.upload_interrupted();
      else if (body.readableEnded) break;
      else {
        const { promise, resolve } = Promise.withResolvers<void>();
        wake = resolve;
        body.resume();
        await promise;
      }
    }
    // Node says of a request whether all of it came.
    if (body.complete === false) throw errors.upload_interrupted();
  } finally {
    body.off('data', onData);
    body.pause();
    for (const event of endings) body.off(event, onEnd);
    signal.removeEventListener('abort', onEnd);
  }
}

function isBroken(body: Readable): boolean {
  return body.readableAborted || body.errored !== null || (body.destroyed && !body.readableEnded);
}
