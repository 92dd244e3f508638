import { createHash } from 'node:crypto';
import { errors } from '../../errors.ts';

/** Bytes from which the media type is told; what the library that tells it asks for. */
const HEAD_BYTES = 4_100;

/** What a body has to be. */
export interface BodyExpectation {
  /** Most bytes of any file, and most that the allowance leaves. */
  readonly byteSizeMax: number;
  readonly allowedBytes: number;
  /** Size and SHA-256 where the sender has told them. */
  readonly byteSize: number | undefined;
  readonly expectedChecksum: Buffer | undefined;
}

/** A body on its way to the store: counted, hashed and held to its bounds as it passes. */
export interface ReceivedBody {
  /** The bytes. They end properly only if everything that is expected of them holds. */
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Why they did not end properly, once they did not. */
  readonly failure: () => unknown;
  /** What has passed; whole once the bytes have ended properly. */
  readonly byteSize: () => number;
  readonly checksum: () => Buffer;
  readonly head: () => Buffer;
}

/** Watches over a body. Its bytes fail with `file_too_large`, `allowance_exceeded`, `file_empty`, `upload_interrupted` or `checksum_mismatch`. */
export function receiveBody(body: AsyncIterable<Uint8Array>, expected: BodyExpectation): ReceivedBody {
  const sha256 = createHash('sha256');
  const head: Uint8Array[] = [];
  let headBytes = 0;
  let byteSize = 0;
  let checksum = Buffer.alloc(0);
  let failure: unknown;
  async function* pass(): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of body) {
        byteSize += chunk.byteLength;
        if (byteSize > expected.byteSizeMax) throw errors.file_too_large();
        if (byteSize > expected.allowedBytes) throw errors.allowance_exceeded();
        sha256.update(chunk);
        if (headBytes < HEAD_BYTES) {
          // A copy, since whoever made the chunk may write the next one into it.
          head.push(Uint8Array.prototype.slice.call(chunk, 0, HEAD_BYTES - headBytes));
          headBytes += chunk.byteLength;
        }
        yield chunk;
      }
      if (byteSize === 0) throw errors.file_empty();
      if (expected.byteSize !== undefined && expected.byteSize !== byteSize) throw errors.upload_interrupted();
      checksum = sha256.digest();
      if (expected.expectedChecksum?.equals(checksum) === false) throw errors.checksum_mismatch();
    } catch (err) {
      failure = err;
      throw err;
    }
  }
  return {
    bytes: pass(),
    failure: () => failure,
    byteSize: () => byteSize,
    checksum: () => checksum,
    head: () => Buffer.concat(head),
  };
}
