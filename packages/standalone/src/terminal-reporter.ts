import pc from 'picocolors';
import type { Reporter } from './reporter.ts';

const CLEAR_LINE = '\r\u001B[2K';

/**
 * Tells the person at the terminal. A step in progress is one line that its end replaces; where the output is no
 * terminal, only its end is a line.
 */
export function createTerminalReporter(out: NodeJS.WriteStream, err: NodeJS.WriteStream): Reporter {
  let running: string | undefined;
  const show = () => {
    if (running !== undefined && out.isTTY) out.write(pc.dim(`… ${running}`));
  };
  const print = (stream: NodeJS.WriteStream, line: string) => {
    if (running !== undefined && out.isTTY) out.write(CLEAR_LINE);
    stream.write(`${line}\n`);
    show();
  };
  return {
    async step(title, work, describe) {
      const startedAt = performance.now();
      running = title;
      show();
      try {
        const result = await work();
        const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
        const about = describe ? ` ${pc.dim(describe(result))}` : '';
        running = undefined;
        if (out.isTTY) out.write(CLEAR_LINE);
        out.write(`${pc.green('✓')} ${title}${about} ${pc.dim(`(${seconds} s)`)}\n`);
        return result;
      } finally {
        if (running !== undefined && out.isTTY) out.write(CLEAR_LINE);
        running = undefined;
      }
    },
    note: (line) => print(out, `  ${line}`),
    warn: (line) => print(err, `${pc.yellow('!')} ${line}`),
  };
}
