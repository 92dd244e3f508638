import { formatBytes, formatPart, pad, printable, shorten } from '../output/text.ts';
import type { Context } from '../program/context.ts';

const BAR_WIDTH = 14;
const NAME_WIDTH_MAX = 16;
const REDRAW_MS = 100;
const CLEAR_LINE = '\r\u001b[2K';

/**
 * Shows an upload or a download: a line that is redrawn on a terminal, else one line once it has
 * ended.
 */
export class UploadProgress {
  readonly #context: Context;
  readonly #name: string;
  readonly #isLive: boolean;
  #startedAt: number | undefined;
  #drawnAt = Number.NEGATIVE_INFINITY;

  /** @param nameWidth of the longest name, so that the lines of all files are aligned */
  constructor(context: Context, name: string, nameWidth: number, first = 'computing SHA-256') {
    this.#context = context;
    this.#isLive = Boolean(context.io.stderr.isTTY) && context.io.env.TERM !== 'dumb';
    this.#name = this.#isLive ? pad(printable(name), Math.min(NAME_WIDTH_MAX, nameWidth)) : printable(name);
    this.#draw(first);
  }

  update(sentBytes: number, totalBytes: number): void {
    const now = performance.now();
    this.#startedAt ??= now;
    if (now - this.#drawnAt < REDRAW_MS) return;
    this.#drawnAt = now;
    const bytesPerSecond = sentBytes / Math.max(0.1, (now - this.#startedAt) / 1_000);
    const rate = `${formatBytes(Math.round(bytesPerSecond))}/s`;
    const left = sentBytes === 0 ? '' : `  ${rate}  ${formatSeconds((totalBytes - sentBytes) / bytesPerSecond)} left`;
    this.#draw(`${bar(sentBytes / totalBytes)}  ${formatPart(sentBytes, totalBytes)}${left}`);
  }

  wait(reason: string): void {
    if (this.#isLive) this.#draw(reason);
    else this.#print(reason);
  }

  end(result: string): void {
    this.clear();
    this.#print(result);
  }

  clear(): void {
    if (this.#isLive) this.#context.io.stderr.write(CLEAR_LINE);
  }

  #print(text: string): void {
    this.#context.note(this.#isLive ? `  ${this.#name}  ${text}` : `${this.#name}: ${text}`);
  }

  #draw(text: string): void {
    if (!this.#isLive) return;
    const { stderr } = this.#context.io;
    // A line that wraps could not be redrawn.
    stderr.write(`${CLEAR_LINE}${shorten(`  ${this.#name}  ${printable(text)}`, (stderr.columns || 80) - 1)}`);
  }
}

function bar(part: number): string {
  const eighths = Math.round(Math.min(1, part) * BAR_WIDTH * 8);
  const partial = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'][eighths % 8] ?? '';
  return `${'█'.repeat(Math.floor(eighths / 8))}${partial}`.padEnd(BAR_WIDTH, '░');
}

function formatSeconds(seconds: number): string {
  return seconds < 60 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`;
}
