import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { ImageRefused, isImageFault } from '../image/image-fault.ts';
import { isConverted } from './converted-image.ts';
import { FRAME, type Frame, FrameReader, frameHead } from './frames.ts';

const PROGRAM = fileURLToPath(new URL('./decoder-process.ts', import.meta.url));

/**
 * What the process may know of ours: nothing but how to behave. The threshold has it give large blocks back once an image is done. It would keep ever
 * larger ones otherwise, and after a few images that take much it would come to the bound of its memory.
 */
const ENV = { UV_THREADPOOL_SIZE: '1', MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '131072', VIPS_BLOCK_UNTRUSTED: '1' };

/**
 * What a process may set aside, in KiB. The images that take most of what may be sent, 16 bits to a channel, with a profile and 65,535 pixels wide, come to
 * 933 MiB, of which 530 are addresses that the engine never uses. It leaves some 620 MiB to be used.
 */
const MEMORY_KIB_MAX = 1_152 * 1_024;

/** Bounds what is run behind it, which keeps its pid. A lower bound that there is already stays, and is none that we could raise. */
const BOUNDED = `ulimit -c 0; ulimit -S -s 8192; ulimit -d ${MEMORY_KIB_MAX}; exec "$@"`;
const SHELL = '/bin/sh';
/** Elsewhere the bound is not kept, or not to be set this way. */
const canBound = process.platform === 'linux' && existsSync(SHELL);

/** What a process may answer, in bytes: a WebP of 256 x 256 has far less, whatever is in it. */
const ANSWER_BYTES_MAX = 1_048_576;

/** What is kept of the last words of a process, in characters. */
const LAST_WORDS_MAX = 2_000;

/** An image, in memory or in a file. */
export type ImageSource = Buffer | { readonly path: string };

/** A process that had started and ended, or was ended, with an image in hand that it has not refused. */
export class DecoderLost extends Error {
  override readonly name = 'DecoderLost';
}

interface Work {
  resolve(converted: Buffer): void;
  reject(err: Error): void;
}

/**
 * A process that converts images, one at a time. Ends with the process that started it. What it answers is not believed: an image may have taken it over,
 * and one that answers what it never does is ended.
 */
export class Decoder {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  #work: Work | undefined;
  #ended = false;
  #isReady = false;
  #lastWords = '';

  /** @param program what it runs */
  constructor(program = PROGRAM) {
    const [command, ...args] = canBound
      ? ([SHELL, '-c', BOUNDED, SHELL, process.execPath, program] as const)
      : ([process.execPath, program] as const);
    // What was compiled before saves 15 MiB and half of the start.
    const env = { ...ENV, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE };
    this.#child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
    const reader = new FrameReader(ANSWER_BYTES_MAX, {
      onFrame: (frame) => this.#onFrame(frame),
      onTooLong: () => this.#distrust(),
    });
    this.#child.stdout.on('data', (piece: Buffer) => reader.push(piece));
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#lastWords = (this.#lastWords + text).slice(-LAST_WORDS_MAX);
    });
    // Its end is told by the process itself.
    this.#child.stdin.on('error', () => undefined);
    this.#child.on('error', (err) => this.#onEnd(err.message));
    this.#child.on('close', (code, signal) => this.#onEnd(`ended with ${signal ?? `code ${code}`} ${this.#lastWords}`.trim()));
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get isUsable(): boolean {
    return !this.#ended;
  }

  /**
   * Inspects an image and converts it.
   *
   * @throws ImageRefused also for what is not decoded in time: the process is ended then
   * @throws DecoderLost
   * @throws Error where its file can't be read, or the process can't be started, for which no image is to blame
   */
  async convert(image: ImageSource, pixelsMax: number, timeoutMs: number): Promise<Buffer> {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    if (this.#ended) throw new DecoderLost('the decoder has ended');
    this.#work = { resolve, reject };
    const timer = setTimeout(() => {
      // What takes so long is made to.
      this.#settle()?.reject(new ImageRefused('undecodable'));
      this.end();
    }, timeoutMs);
    this.#send(image, pixelsMax);
    return await promise.finally(() => clearTimeout(timer));
  }

  /** Ends the process at once. */
  end(): void {
    this.#ended = true;
    this.#child.kill('SIGKILL');
  }

  #send(image: ImageSource, pixelsMax: number): void {
    const isInMemory = Buffer.isBuffer(image);
    const bytes = isInMemory ? image : Buffer.from(image.path);
    const bound = Buffer.alloc(4);
    bound.writeUInt32BE(pixelsMax);
    const { stdin } = this.#child;
    stdin.cork();
    stdin.write(frameHead(isInMemory ? FRAME.image : FRAME.path, bound.length + bytes.length));
    stdin.write(bound);
    stdin.write(bytes);
    stdin.uncork();
  }

  #onFrame({ kind, bytes }: Frame): void {
    const text = bytes.toString('utf8', 0, LAST_WORDS_MAX);
    if (kind === FRAME.ready && !this.#isReady) this.#isReady = true;
    else if (!this.#work) this.#distrust();
    else if (kind === FRAME.converted && isConverted(bytes)) this.#settle()?.resolve(bytes);
    else if (kind === FRAME.refused && isImageFault(text)) this.#settle()?.reject(new ImageRefused(text));
    else if (kind === FRAME.unreadable) this.#settle()?.reject(new Error(`The image can't be read: ${text}`));
    else this.#distrust();
  }

  #distrust(): void {
    this.end();
    this.#settle()?.reject(new DecoderLost('answered what it never does'));
  }

  #onEnd(why: string): void {
    this.#ended = true;
    this.#settle()?.reject(this.#isReady ? new DecoderLost(why) : new Error(`No decoder starts: ${why}`));
  }

  #settle(): Work | undefined {
    const work = this.#work;
    this.#work = undefined;
    return work;
  }
}
