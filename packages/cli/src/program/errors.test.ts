import { LatchkeyError } from '@latchkey/client';
import { expect, it } from 'vitest';
import { toCliError } from './errors.ts';

it.each(['__proto__', 'constructor', 'a_later_code'])('prints the message of an error with the code %s', (code) => {
  const { message } = toCliError(new LatchkeyError('Refused', { code, status: 400 }));
  expect(message).toBe('Refused. Run it again with --verbose for the response.');
});

it.each([
  ['overlap_active', /--end-previous/],
  // Renames cannot replace a file.
  ['file_name_taken', / Choose another name, or upload with --replace\.$/],
])('says what to do after %s', (code, advice) => {
  expect(toCliError(new LatchkeyError('Refused.', { code, status: 409 })).message).toMatch(advice);
});

it('advises a smaller file where one file is above the limit, and to delete where all are', () => {
  const [one, all] = [[{ path: 'file', message: 'must have at most 150 MiB' }], []].map((details) =>
    toCliError(new LatchkeyError('Refused', { code: 'limit_exceeded', status: 413, details })),
  );
  expect(one?.message).toMatch(/^Refused. Choose a smaller file/);
  expect(all?.message).toContain('delete something');
});
