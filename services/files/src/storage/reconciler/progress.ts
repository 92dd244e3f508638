import type { Counts } from './finding.ts';
import { describeProgress } from './report.ts';

/** A stream of text, which may be a terminal. */
export interface TextOutput {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

export interface CheckOutputs {
  /** Gets findings and the summary. */
  readonly out: TextOutput;
  /** Gets the progress: one line that is rewritten on a terminal, else a line every few seconds. */
  readonly err: TextOutput;
}

const CLEAR_LINE = '\r\u001B[2K';
const TERMINAL_INTERVAL_MS = 100;
const LINES_INTERVAL_MS = 3_000;
const COLUMNS = 80;

/** Shows the progress of a run until it is ended; what is printed makes room for itself. */
export function startProgress({ out, err }: CheckOutputs, counts: Readonly<Counts>) {
  const isTerminal = err.isTTY === true;
  let shown = '';
  const clear = () => {
    if (isTerminal && shown !== '') err.write(CLEAR_LINE);
    shown = '';
  };
  const show = () => {
    const text = describeProgress(counts);
    if (text === shown) return;
    err.write(isTerminal ? `${CLEAR_LINE}${text.slice(0, (err.columns ?? COLUMNS) - 1)}` : `${text}\n`);
    shown = text;
  };
  const timer = setInterval(show, isTerminal ? TERMINAL_INTERVAL_MS : LINES_INTERVAL_MS);
  return {
    print(text: string) {
      clear();
      out.write(`${text}\n`);
    },
    end() {
      clearInterval(timer);
      clear();
    },
  };
}
