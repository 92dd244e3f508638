import type { Context } from '../context.ts';
import { formatBytes, printable, shorten } from '../output/text.ts';

const BAR_WIDTH = 20;
const REDRAW_MS = 100;
const CLEAR_LINE = '\r\u001b[2K';
/** Columns of all but the name and the bar. */
const FIGURES_WIDTH = 44;

/** Shows an upload: a line that is redrawn on a terminal, else one line once it has ended. */
export class UploadProgress {
  readonly #context: Context;
  readonly #name: string;
  readonly #startedAt = performance.now();
  #drawnAt = Number.NEGATIVE_INFINITY;

  constructor(context: Context, name: string) {
    this.#context = context;
    this.#name = name;
  }

  update(sentBytes: number, totalBytes: number): void {
    const now = performance.now();
    if (!this.#isLive || now - this.#drawnAt < REDRAW_MS) return;
    this.#drawnAt = now;
    const bytesPerSecond = sentBytes / Math.max(0.001, (now - this.#startedAt) / 1_000);
    const figures = `${formatBytes(sentBytes)} of ${formatBytes(totalBytes)}  ${formatBytes(Math.round(bytesPerSecond))}/s`;
    const left = sentBytes === 0 ? '' : `  ${formatSeconds((totalBytes - sentBytes) / bytesPerSecond)} left`;
    this.#draw(`${bar(sentBytes / totalBytes)}  ${figures}${left}`);
  }

  /** Says why nothing happens. */
  wait(reason: string): void {
    if (this.#isLive) this.#draw(reason);
    else this.#context.note(`${this.#name}: ${reason}`);
  }

  end(result: string): void {
    if (this.#isLive) this.#draw(result, '\n');
    else this.#context.note(`${this.#name}: ${result}`);
  }

  clear(): void {
    if (this.#isLive) this.#context.io.stderr.write(CLEAR_LINE);
  }

  get #isLive(): boolean {
    return Boolean(this.#context.io.stderr.isTTY);
  }

  #draw(text: string, end = ''): void {
    const { stderr } = this.#context.io;
    const columns = stderr.columns || 80;
    const nameWidth = Math.max(10, Math.min(40, columns - BAR_WIDTH - FIGURES_WIDTH));
    const name = shorten(printable(this.#name), nameWidth);
    // A line that wraps could not be redrawn.
    stderr.write(`${CLEAR_LINE}${shorten(`  ${name}  ${printable(text)}`, columns - 1)}${end}`);
  }
}

function bar(part: number): string {
  const eighths = Math.round(Math.min(1, part) * BAR_WIDTH * 8);
  const partial = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'][eighths % 8] ?? '';
  return `${'█'.repeat(Math.floor(eighths / 8))}${partial}`.padEnd(BAR_WIDTH, '░');
}

function formatSeconds(seconds: number): string {
  return seconds < 60 ? `${Math.ceil(seconds)} s` : `${Math.floor(seconds / 60)} min ${Math.ceil(seconds % 60)} s`;
}
