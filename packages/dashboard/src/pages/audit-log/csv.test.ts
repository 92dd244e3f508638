import { expect, it } from 'vitest';
import { toCell } from './csv.ts';

it('writes no cell that a spreadsheet takes for a formula, and quotes what would end a cell', () => {
  for (const start of ['=', '+', '-', '@', '\t', '\r']) expect(toCell(`${start}HYPERLINK()`)).toMatch(/^"?'/);
  expect(toCell('a "quoted", text\r\nof two lines')).toBe('"a ""quoted"", text\r\nof two lines"');
  expect(toCell('=1,"2"')).toBe('"\'=1,""2"""');
  expect(toCell('plain text')).toBe('plain text');
});
