import { ImageRefused } from '../image/image-fault.ts';
import { Decoder, DecoderLost, type ImageSource } from './decoder.ts';

/** Converts images in processes of their own, some at a time. */
export interface Decoders {
  /**
   * Inspects an image and converts it; waits while as many as may be are under way.
   *
   * @throws ImageRefused where it is no acceptable image, can't be decoded in time, or two processes died over it
   * @throws DecoderLost where all were ended
   * @throws Error where its file can't be read, or no process starts
   */
  convert(image: ImageSource): Promise<Buffer>;
  /** Ends all processes at once. */
  close(): void;
}

/** How images are decoded. */
export interface DecoderOptions {
  readonly atOnce: number;
  readonly pixelsMax: number;
  /** Longest time for one image, in milliseconds. */
  readonly timeoutMs: number;
  /** How long a process stays that has nothing to do, in milliseconds; 30 s unless set. It takes a tenth of a second to start, and some 70 MiB. */
  readonly idleMs?: number;
  /** Told of each process that died over an image. */
  readonly onLost?: (err: DecoderLost) => void;
  /** What the processes run; the decoder unless set. */
  readonly program?: string;
}

const IDLE_MS = 30_000;

/** Processes that may die over one image. The first may have been ended for what others took; what ends two takes the machine down with it. */
const LOST_MAX = 2;

/** Starts processes when there is an image for them, and ends those that have had none for a while. */
export function createDecoders({ atOnce, pixelsMax, timeoutMs, idleMs = IDLE_MS, onLost, program }: DecoderOptions): Decoders {
  const idle: Array<{ readonly decoder: Decoder; readonly timer: NodeJS.Timeout }> = [];
  const busy = new Set<Decoder>();
  const waiting: Array<() => void> = [];
  let underWay = 0;
  let closed = false;

  const take = (): Decoder => {
    for (let found = idle.pop(); found !== undefined; found = idle.pop()) {
      clearTimeout(found.timer);
      if (found.decoder.isUsable) return found.decoder;
    }
    return new Decoder(program);
  };
  const giveBack = (decoder: Decoder) => {
    if (closed) decoder.end();
    if (!decoder.isUsable) return;
    const end = () => {
      idle.splice(
        idle.findIndex((one) => one.decoder === decoder),
        1,
      );
      decoder.end();
    };
    idle.push({ decoder, timer: setTimeout(end, idleMs).unref() });
  };
  const convertOnce = async (image: ImageSource): Promise<Buffer> => {
    const decoder = take();
    busy.add(decoder);
    try {
      return await decoder.convert(image, pixelsMax, timeoutMs);
    } finally {
      busy.delete(decoder);
      giveBack(decoder);
    }
  };
  const convertAgain = async (image: ImageSource): Promise<Buffer> => {
    for (let lost = 1; ; lost += 1) {
      try {
        return await convertOnce(image);
      } catch (err) {
        // What was ended with all the others says nothing of the image.
        if (!(err instanceof DecoderLost) || closed) throw err;
        onLost?.(err);
        if (lost >= LOST_MAX) throw new ImageRefused('undecodable');
      }
    }
  };
  return {
    async convert(image) {
      if (underWay >= atOnce) await new Promise<void>((resolve) => waiting.push(resolve));
      else underWay += 1;
      try {
        return await convertAgain(image);
      } finally {
        // The place goes to who waits longest.
        const next = waiting.shift();
        if (next) next();
        else underWay -= 1;
      }
    },
    close() {
      closed = true;
      for (const decoder of [...busy, ...idle.map((one) => one.decoder)]) decoder.end();
      for (const { timer } of idle) clearTimeout(timer);
    },
  };
}
