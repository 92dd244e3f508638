import { readFileSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { setPriority } from 'node:os';
import { ImageRefused } from '../image/image-fault.ts';
import { inspectImage } from '../image/inspect-image.ts';
import { convertImage } from './convert-image.ts';
import { FRAME, type Frame, FrameReader, frameHead } from './frames.ts';

/**
 * The process that looks at images and decodes them: they come in, one at a time, and what was made of them goes out. Decoders of image formats are where
 * strangers' bytes meet the most native code there is, so this process has no secret, no connection and no work but that, and may be killed at any moment.
 */

/** Everything else on the machine goes first: somebody waits for those, and an image takes a tenth of a second either way. */
const NICENESS = 10;

const PIXELS_MAX_BYTES = 4;

try {
  setPriority(NICENESS);
} catch {
  // Not every platform lets a process do that.
}

// Who sends to us is trusted, and has bounded the images.
const reader = new FrameReader(0xffff_ffff, { onFrame: (frame) => void answer(frame), onTooLong: () => undefined });
process.stdin.on('data', (piece: Buffer) => reader.push(piece));
// Whoever started us has gone. A decoding thread would hold up an exit.
process.stdin.on('end', () => process.kill(process.pid, 'SIGKILL'));
// A signal to the group is for the service to see to, which may have images under way.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.stdout.on('error', () => undefined);
send(FRAME.ready, Buffer.alloc(0));
// Node.js would do so at an orderly end, which there never is; and nobody's image has been here yet.
flushCompileCache();

async function answer({ kind, bytes: message }: Frame): Promise<void> {
  const pixelsMax = message.readUInt32BE(0);
  const given = message.subarray(PIXELS_MAX_BYTES);
  const image = kind === FRAME.path ? readImage(given.toString()) : given;
  if (image instanceof Error) return send(FRAME.unreadable, Buffer.from(image.message));
  try {
    const { bytes } = inspectImage(image, { pixelsMax });
    send(FRAME.converted, await convertImage(bytes, pixelsMax));
  } catch (err) {
    send(FRAME.refused, Buffer.from(err instanceof ImageRefused ? err.fault : 'damaged'));
  }
}

/** At once, as there is nothing else to do here: in pieces it takes twice as long. */
function readImage(path: string): Buffer | Error {
  try {
    return readFileSync(path);
  } catch (err) {
    return err as Error;
  }
}

function send(kind: number, bytes: Buffer): void {
  process.stdout.write(Buffer.concat([frameHead(kind, bytes.length), bytes]));
}
