import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { IMAGE_REASONS, ImageRejected, isWebp } from './check-image.ts';

const PROGRAM = fileURLToPath(new URL('./decoder-process.ts', import.meta.url));

/**
 * The whole environment of the process. The malloc threshold makes glibc return large blocks after
 * each image; otherwise a process grows up to its memory limit after a few large images.
 */
const ENV = { UV_THREADPOOL_SIZE: '1', MALLOC_ARENA_MAX: '2', MALLOC_MMAP_THRESHOLD_: '131072', VIPS_BLOCK_UNTRUSTED: '1' };

/**
 * Memory limit (RLIMIT_DATA) in KiB. V8 reserves 530 MiB of it that it never uses. The largest
 * image, 65,535 pixels wide with 16-bit channels and a profile, needs 933 MiB.
 */
const MEMORY_KIB_MAX = 1_152 * 1_024;
const SHELL = '/bin/sh';
const WITH_LIMITS = `ulimit -c 0; ulimit -S -s 8192; ulimit -d ${MEMORY_KIB_MAX}; exec "$@"`;
const canLimit = process.platform === 'linux' && existsSync(SHELL);

const RESPONSE_LENGTH_MAX = 1_048_576;
const STDERR_LENGTH_MAX = 2_000;
/** A process without work ends after this: it holds some 70 MiB, and takes 0.1 s to start. */
const IDLE_MS = 30_000;

export type ImageSource = { readonly path: string } | { readonly base64: string };

export type DecoderRequest = ImageSource & { readonly pixelsMax: number };

const responseSchema = z.union([
  z.strictObject({ ready: z.literal(true) }),
  z.strictObject({ webp: z.base64() }),
  z.strictObject({ rejected: z.enum(IMAGE_REASONS) }),
  z.strictObject({ unreadable: z.string() }),
]);

export type DecoderResponse = z.output<typeof responseSchema>;

/** A process that had started ended or was killed before it responded. */
export class DecoderLost extends Error {
  override readonly name = 'DecoderLost';
}

/** The first may have been killed for others' memory; an image that ends two is the cause. */
const TRIES_MAX = 2;

export interface DecoderPoolOptions {
  readonly program?: string;
  readonly idleMs?: number;
  readonly pixelsMax: number;
  readonly timeoutMs: number;
  readonly onLost?: (err: DecoderLost) => void;
}

export type DecoderPool = ReturnType<typeof createDecoderPool>;

export function createDecoderPool({ pixelsMax, timeoutMs, onLost, ...options }: DecoderPoolOptions) {
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
    /**
     * Converts an image in an idle process or a new one; callers limit concurrency. Throws
     * ImageRejected, also where the image ended two processes; DecoderLost where the pool was
     * closed; another error where the file can't be read or no process starts.
     */
    async convert(image: ImageSource): Promise<Buffer> {
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
    close(): void {
      isClosed = true;
      for (const decoder of decoders) decoder.end();
    },
  };
}

/**
 * A process that converts one image at a time. An image may have taken it over, so its responses
 * are validated, and an invalid one ends it.
 */
export class Decoder {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #idleMs: number;
  #work: PromiseWithResolvers<Buffer> | undefined;
  #idleTimer: NodeJS.Timeout | undefined;
  hasEnded = false;
  #isReady = false;
  #output = '';
  #stderr = '';

  constructor({ program = PROGRAM, idleMs = IDLE_MS }: Pick<DecoderPoolOptions, 'program' | 'idleMs'> = {}) {
    this.#idleMs = idleMs;
    const command = [process.execPath, program];
    const [file = '', ...args] = canLimit ? [SHELL, '-c', WITH_LIMITS, SHELL, ...command] : command;
    // The compile cache saves 15 MiB, and half of the time to start.
    const env = { ...ENV, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE };
    this.#child = spawn(file, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => this.#onOutput(text));
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-STDERR_LENGTH_MAX);
    });
    this.#child.stdin.on('error', () => undefined);
    this.#child.on('error', (err) => this.#onEnd(err.message));
    this.#child.on('close', (code, signal) => this.#onEnd(`ended with ${signal ?? `code ${code}`} ${this.#stderr}`.trim()));
  }

  get isBusy(): boolean {
    return this.#work !== undefined;
  }

  /**
   * Throws ImageRejected, also after the time-out, which kills the process; DecoderLost; another
   * error where the file can't be read or the process can't start, which no image causes.
   */
  async convert(image: ImageSource, pixelsMax: number, timeoutMs: number): Promise<Buffer> {
    if (this.hasEnded) throw new DecoderLost('the decoder has ended');
    clearTimeout(this.#idleTimer);
    const work = Promise.withResolvers<Buffer>();
    this.#work = work;
    const timer = setTimeout(() => this.end(new ImageRejected('image_undecodable')), timeoutMs);
    this.#child.stdin.write(`${JSON.stringify({ ...image, pixelsMax } satisfies DecoderRequest)}\n`);
    return work.promise.finally(() => clearTimeout(timer));
  }

  /** Kills the process; an image in work is rejected with the error. */
  end(err: Error = new DecoderLost('the decoder was ended')): void {
    this.hasEnded = true;
    this.#child.kill('SIGKILL');
    this.#finish()?.reject(err);
    clearTimeout(this.#idleTimer);
  }

  #onOutput(text: string): void {
    const lines = (this.#output + text).split('\n');
    this.#output = lines.pop() ?? '';
    for (const line of lines) this.#onResponse(line);
    if (this.#output.length > RESPONSE_LENGTH_MAX) this.#endDistrusted();
  }

  #onResponse(line: string): void {
    const { data } = responseSchema.safeParse(parseJson(line));
    if (data && 'ready' in data && !this.#isReady) this.#isReady = true;
    else if (!data || 'ready' in data || !this.#work) this.#endDistrusted();
    else if ('rejected' in data) this.#finish()?.reject(new ImageRejected(data.rejected));
    else if ('unreadable' in data) this.#finish()?.reject(new Error(`The image can't be read: ${data.unreadable}`));
    else {
      const webp = Buffer.from(data.webp, 'base64');
      if (isWebp(webp)) this.#finish()?.resolve(webp);
      else this.#endDistrusted();
    }
  }

  #endDistrusted(): void {
    this.end(new DecoderLost('the decoder sent an invalid response'));
  }

  #onEnd(why: string): void {
    this.end(this.#isReady ? new DecoderLost(why) : new Error(`The decoder does not start: ${why}`));
  }

  #finish(): PromiseWithResolvers<Buffer> | undefined {
    const work = this.#work;
    this.#work = undefined;
    this.#idleTimer = setTimeout(() => this.end(), this.#idleMs).unref();
    return work;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
