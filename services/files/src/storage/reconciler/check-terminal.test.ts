import { eventually } from '@latchkey/testkit/eventually';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createCheckTerminal } from './check-terminal.ts';
import type { CheckCounts } from './finding.ts';

const CLEAR_LINE = '\r\u001B[2K';
const MIB = 1024 * 1024;
const COUNTS: CheckCounts = {
  files: 1_200,
  filesExpected: 3_400,
  avatars: 0,
  bytesRead: 2.5 * MIB,
  objects: 1,
  applications: 0,
  findings: 1,
  mended: 0,
};
const PROGRESS = '1,200 of 3,400 files, 2.5 MiB read, 1 object, 1 problem';

/** A terminal of so many columns, which keeps what is written to it and to standard output. */
function createTerminal(columns?: number) {
  const written: string[] = [];
  const write = (text: string) => void written.push(text);
  const terminal = createCheckTerminal({ out: { write }, err: { write, isTTY: true, ...(columns && { columns }) } });
  onTestFinished(() => terminal.close());
  return { terminal, written };
}

describe('at a terminal', () => {
  it('progress is one line that is written anew', async () => {
    const { terminal, written } = createTerminal();
    terminal.onProgress(COUNTS);
    await eventually(() => written.length === 1);
    terminal.onProgress({ ...COUNTS, files: 1_201 });
    await eventually(() => written.length === 2);
    expect(written).toEqual([`${CLEAR_LINE}${PROGRESS}`, `${CLEAR_LINE}${PROGRESS.replace('1,200', '1,201')}`]);
  });

  it('progress makes way for what was found, and for the end', async () => {
    const { terminal, written } = createTerminal();
    terminal.onProgress(COUNTS);
    await eventually(() => written.length === 1);
    terminal.print('found');
    expect(written.slice(1)).toEqual([CLEAR_LINE, 'found\n']);
    await eventually(() => written.length === 4);
    terminal.close();
    expect(written.slice(3)).toEqual([`${CLEAR_LINE}${PROGRESS}`, CLEAR_LINE]);
  });

  it('progress that stands still is not written again', async () => {
    const [still, moving] = [createTerminal(), createTerminal()];
    still.terminal.onProgress(COUNTS);
    for (let files = 0; files < 3; files += 1) {
      moving.terminal.onProgress({ ...COUNTS, files });
      await eventually(() => moving.written.length > files);
    }
    expect(still.written).toHaveLength(1);
  });

  it('progress is no longer than the line', async () => {
    const { terminal, written } = createTerminal(20);
    terminal.onProgress(COUNTS);
    await eventually(() => written.length === 1);
    expect(written).toEqual([`${CLEAR_LINE}${PROGRESS.slice(0, 19)}`]);
  });
});
