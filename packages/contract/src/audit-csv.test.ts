import { expect, it } from 'vitest';
import { toCsvLine } from './audit-csv.ts';

it('writes no cell that a spreadsheet takes for a formula, and quotes what would end a cell', () => {
  for (const start of ['=', '+', '-', '@', '\t', '\r']) expect(toCsvLine([`${start}HYPERLINK()`])).toMatch(/^"?'/);
  expect(toCsvLine(['a "quoted", text\r\nof two lines', '=1,"2"', 'plain text'])).toBe(
    '"a ""quoted"", text\r\nof two lines","\'=1,""2""",plain text\r\n',
  );
});
