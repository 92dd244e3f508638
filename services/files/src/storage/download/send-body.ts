import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { writeChunk } from '@latchkey/kit/http/write-chunk';
import { bytesSent } from '../../files-metrics.ts';

/**
 * Sends a body as fast as the client reads it, one chunk at a time. Where the bytes end early, are
 * too many, fail, or stall, it destroys the connection, so that the client sees a body that was cut
 * short. It always closes the source. Throws what went wrong, a vanished client included.
 */
export async function sendBody(
  res: ServerResponse,
  source: Readable,
  { byteSize, stallTimeoutMs }: { readonly byteSize: number; readonly stallTimeoutMs: number },
): Promise<void> {
  let cause: Error | undefined;
  const stop = (err: Error) => {
    cause ??= err;
    source.destroy(err);
    res.destroy();
  };
  const timer = setTimeout(() => stop(new Error(`Nothing moved for ${stallTimeoutMs} ms`)), stallTimeoutMs);
  const onClose = () => stop(new Error('The client went away'));
  if (res.closed) onClose();
  res.once('close', onClose);
  try {
    let left = byteSize;
    for await (const chunk of source as AsyncIterable<Buffer>) {
      timer.refresh();
      left -= chunk.byteLength;
      if (left < 0) throw new Error(`The object has more than ${byteSize} bytes`);
      bytesSent.add(chunk.byteLength);
      await writeChunk(res, chunk);
      timer.refresh();
    }
    if (left > 0) throw new Error(`The object lacks ${left} of ${byteSize} bytes`);
    res.off('close', onClose);
    await new Promise<void>((resolve) => res.end(resolve));
  } catch (err) {
    res.destroy();
    throw cause ?? err;
  } finally {
    clearTimeout(timer);
    source.destroy();
  }
}
