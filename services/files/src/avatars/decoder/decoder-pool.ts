import { Decoder, DecoderLost, type DecoderOptions, type ImageSource } from './decoder.ts';
import { ImageRejected } from './image-rejected.ts';

/** The first may have been killed for others' memory; an image that ends two is the cause. */
const TRIES_MAX = 2;

export interface DecoderPoolOptions extends DecoderOptions {
  readonly pixelsMax: number;
  /** Longest time for one image, in milliseconds. */
  readonly timeoutMs: number;
  /** Called for each process that ended over an image. */
  readonly onLost?: (err: DecoderLost) => void;
}

/** Converts images in processes of their own. */
export interface DecoderPool {
  /**
   * Converts an image to an avatar, in an idle process or a new one; callers limit concurrency.
   *
   * @throws ImageRejected also where the image ended two processes
   * @throws DecoderLost where the pool was closed
   * @throws Error where the file can't be read or no process starts
   */
  convert(image: ImageSource): Promise<Buffer>;
  /** Kills all processes. */
  close(): void;
}

export function createDecoderPool({ pixelsMax, timeoutMs, onLost, ...options }: DecoderPoolOptions): DecoderPool {
  let decoders: Decoder[] = [];
  let isClosed = false;
  const takeDecoder = () => {
    decoders = decoders.filter((decoder) => !decoder.hasEnded);
    const idle = decoders.find((decoder) => !decoder.isBusy);
    if (idle) return idle;
    const started = new Decoder(options);
    decoders.push(started);
    return started;
  };
  return {
    async convert(image) {
      for (let tries = 1; ; tries += 1) {
        try {
          return await takeDecoder().convert(image, pixelsMax, timeoutMs);
        } catch (err) {
          if (!(err instanceof DecoderLost) || isClosed) throw err;
          onLost?.(err);
          if (tries === TRIES_MAX) throw new ImageRejected('image_undecodable');
        }
      }
    },
    close() {
      isClosed = true;
      for (const decoder of decoders) decoder.end();
    },
  };
}
