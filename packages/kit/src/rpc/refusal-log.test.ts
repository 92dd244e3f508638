import { beforeEach, describe, expect, it } from 'vitest';
import { type LogLine, memoryLogger } from '../testing/memory-logger.ts';
import { createRefusalLog, type NoteRefusal } from './refusal-log.ts';

const MINUTE_MS = 60_000;

describe('the log of refusals', () => {
  let nowMs: number;
  let lines: LogLine[];
  let note: NoteRefusal;
  beforeEach(() => {
    nowMs = 0;
    const memory = memoryLogger();
    lines = memory.lines;
    note = createRefusalLog(memory.logger, 'refused', () => nowMs);
  });
  const told = () => lines.map(({ address, refusals }) => [address, refusals]);

  it('says at once who is refused and why, as a warning', () => {
    note('::ffff:10.0.0.7', { reason: 'unknown' });
    expect(lines).toMatchObject([{ level: 40, address: '10.0.0.7', refusals: 1, reason: 'unknown', msg: 'refused' }]);
  });

  it('says of an address once a minute how often it was refused', () => {
    for (let i = 0; i < 5; i += 1) note('10.0.0.7');
    note('10.0.0.8');
    nowMs += MINUTE_MS - 1;
    note('10.0.0.7');
    nowMs += 1;
    for (let i = 0; i < 5; i += 1) note('10.0.0.7');
    expect(told()).toEqual([
      ['10.0.0.7', 1],
      ['10.0.0.8', 1],
      ['10.0.0.7', 6],
    ]);
  });

  it('takes further addresses for one where there are many, and tells them apart again later', () => {
    for (let i = 0; i < 10_000; i += 1) note(`fd00::${i.toString(16)}`);
    expect(lines).toHaveLength(101);
    expect(told().at(-1)).toEqual(['others', 1]);
    nowMs += MINUTE_MS;
    note('10.0.0.7');
    expect(told().at(-1)).toEqual(['10.0.0.7', 1]);
  });
});
