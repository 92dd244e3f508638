import { LatchkeyError } from '@latchkey/client';
import { expect, it } from 'vitest';
import { explainError } from './explain-error.ts';

it.each(['__proto__', 'constructor', 'toString', 'a_later_code'])('shows the message of an error with the code %s', (code) => {
  expect(explainError(new LatchkeyError('Refused', { code, status: 400 }))).toMatchObject({ title: 'Refused', advice: '' });
});
