import { describeFinding, describeProgress } from './describe.ts';
import type { CheckCounts, CheckObserver, Finding, MendOutcome } from './finding.ts';

/** A stream that text is written to, which may be a terminal. */
export interface TextOutput {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** Where a check tells what it does. */
export interface CheckOutputs {
  /** Gets what was found. */
  readonly out: TextOutput;
  /** Gets the progress: one line that is written anew on a terminal, else a line every few seconds. */
  readonly err: TextOutput;
}

const CLEAR_LINE = '\r\u001B[2K';
const TERMINAL_INTERVAL_MS = 100;
const LINES_INTERVAL_MS = 3_000;
const COLUMNS = 80;

/** Tells the person who runs a check. */
export interface CheckTerminal extends CheckObserver {
  print(text: string): void;
  /** Ends the progress. */
  close(): void;
}

export function createCheckTerminal({ out, err }: CheckOutputs): CheckTerminal {
  const live = err.isTTY === true;
  let latest: Readonly<CheckCounts> | undefined;
  let shown = '';
  const clear = () => {
    if (live && shown !== '') err.write(CLEAR_LINE);
    shown = '';
  };
  const show = () => {
    const text = latest ? describeProgress(latest) : '';
    if (text === shown) return;
    if (live) err.write(`${CLEAR_LINE}${text.slice(0, (err.columns ?? COLUMNS) - 1)}`);
    else err.write(`${text}\n`);
    shown = text;
  };
  const timer = setInterval(show, live ? TERMINAL_INTERVAL_MS : LINES_INTERVAL_MS);
  const print = (text: string) => {
    clear();
    out.write(`${text}\n`);
  };
  return {
    print,
    close() {
      clearInterval(timer);
      clear();
    },
    onProgress(counts) {
      latest = counts;
    },
    onFinding: (finding) => print(describeFinding(finding)),
    onMended(finding: Finding, outcome: MendOutcome, cause: unknown) {
      if (outcome === 'failed') print(`not mended: ${describeFinding(finding)} (${(cause as Error).message})`);
    },
  };
}
