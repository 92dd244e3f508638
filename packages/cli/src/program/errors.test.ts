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

it.each([
  ['body.levels.0', 'must be 1 to 16 characters', 'levels.0 must be 1 to 16 characters'],
  ['request', 'The release is not published.', 'The release is not published'],
])('prints the rule of %s', (path, message, rule) => {
  const error = new LatchkeyError('Refused', { code: 'bad_request', status: 400, details: [{ path, message }] });
  expect(toCliError(error).message).toBe(`Rejected: ${rule}. Correct it, or see --help.`);
});

it('advises a smaller file where one file is above the limit, and to delete where all are', () => {
  const [one, all] = [[{ path: 'file', message: 'must have at most 150 MiB' }], []].map((details) =>
    toCliError(new LatchkeyError('Refused', { code: 'limit_exceeded', status: 413, details })),
  );
  expect(one?.message).toMatch(/^Refused. Choose a smaller file/);
  expect(all?.message).toContain('delete something');
});
