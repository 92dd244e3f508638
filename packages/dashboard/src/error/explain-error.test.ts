import { LatchkeyError } from '@latchkey/client';
import { expect, it } from 'vitest';
import { explainError } from './explain-error.ts';

it.each(['__proto__', 'constructor', 'toString', 'a_later_code'])('shows the message of an error with the code %s', (code) => {
  expect(explainError(new LatchkeyError('Refused', { code, status: 400 }))).toMatchObject({ title: 'Refused', advice: '' });
});

it('advises what to do where a limit is reached', () => {
  expect(explainError(new LatchkeyError('File limit reached', { code: 'limit_exceeded', status: 413 }))).toMatchObject({
    title: 'File limit reached',
    advice: 'Delete what you do not need, or ask the operator for a higher limit.',
  });
});
