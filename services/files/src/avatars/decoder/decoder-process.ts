import { readFileSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { setPriority } from 'node:os';
import { createInterface } from 'node:readline';
import { ImageRejected } from './check-image.ts';
import { convertImage } from './convert-image.ts';
import type { DecoderRequest, DecoderResponse } from './decoder-pool.ts';

/**
 * Decodes images, one at a time: requests and responses are lines of JSON. Image decoders are
 * native code that reads untrusted bytes, so this process has no secret and no connection, and may
 * be killed at any moment.
 */

/** Requests of the services come first; a decoded image takes a tenth of a second. */
const NICENESS = 10;

try {
  setPriority(NICENESS);
} catch {}
// Signals to the whole process group are for the service, which may still need this process.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
process.stdout.on('error', () => undefined);
// An orderly exit would wait for the thread that decodes.
process.stdin.on('end', () => process.kill(process.pid, 'SIGKILL'));

createInterface({ input: process.stdin }).on('line', (line) => void respond(JSON.parse(line) as DecoderRequest));
send({ ready: true });
// Node.js would do so at exit, and this process is killed.
flushCompileCache();

async function respond(request: DecoderRequest): Promise<void> {
  let bytes: Buffer;
  try {
    bytes = 'path' in request ? readFileSync(request.path) : Buffer.from(request.base64, 'base64');
  } catch (err) {
    return send({ unreadable: (err as Error).message });
  }
  try {
    send({ webp: (await convertImage(bytes, request.pixelsMax)).toString('base64') });
  } catch (err) {
    send({ rejected: err instanceof ImageRejected ? err.reason : 'image_damaged' });
  }
}

function send(response: DecoderResponse): void {
  process.stdout.write(`${JSON.stringify(response)}\n`);
}
