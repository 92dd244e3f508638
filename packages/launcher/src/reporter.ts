import pc from 'picocolors';

const CLEAR_LINE = '\r\u001B[2K';

export type Reporter = ReturnType<typeof createTerminalReporter>;

export const silentReporter: Reporter = {
  step: (_title, work) => work(),
  note: () => {},
  warn: () => {},
};

/** At a terminal, the end of a step replaces the line of its begin, which is shown only there. */
export function createTerminalReporter(out: NodeJS.WriteStream, err: NodeJS.WriteStream) {
  let running: string | undefined;
  const redraw = (write: () => void) => {
    if (out.isTTY && running !== undefined) out.write(CLEAR_LINE);
    write();
    if (out.isTTY && running !== undefined) out.write(pc.dim(`… ${running}`));
  };
  return {
    /** @param describe what to add about the result */
    async step<T>(title: string, work: () => Promise<T>, describe?: (result: T) => string): Promise<T> {
      const startedAt = performance.now();
      redraw(() => {
        running = title;
      });
      let line = '';
      try {
        const result = await work();
        const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
        const about = describe ? ` ${pc.dim(describe(result))}` : '';
        line = `${pc.green('✓')} ${title}${about} ${pc.dim(`(${seconds} s)`)}\n`;
        return result;
      } finally {
        redraw(() => {
          running = undefined;
          out.write(line);
        });
      }
    },
    note: (line: string) => redraw(() => out.write(`  ${line}\n`)),
    warn: (line: string) => redraw(() => err.write(`${pc.yellow('!')} ${line}\n`)),
  };
}

/** Passes on the same line at most once in an interval. */
export function limitRepeats(emit: (line: string) => void, intervalMs: number): (line: string) => void {
  const emittedAt = new Map<string, number>();
  return (line) => {
    const now = performance.now();
    if (now - (emittedAt.get(line) ?? Number.NEGATIVE_INFINITY) < intervalMs) return;
    emittedAt.set(line, now);
    emit(line);
  };
}

/** Passes on at most this many lines a second, and counts the rest. */
export function limitRate(emit: (line: string) => void, linesPerSecondMax: number): (line: string) => void {
  let windowStart = Number.NEGATIVE_INFINITY;
  let count = 0;
  return (line) => {
    const now = performance.now();
    if (now - windowStart >= 1_000) {
      if (count > linesPerSecondMax) emit(`${count - linesPerSecondMax} more like these are in the log.`);
      windowStart = now;
      count = 0;
    }
    count += 1;
    if (count <= linesPerSecondMax) emit(line);
  };
}
