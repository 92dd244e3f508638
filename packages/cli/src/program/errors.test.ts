import { LatchkeyError } from '@latchkey/client';
import { expect, it } from 'vitest';
import { toCliError } from './errors.ts';

it.each(['__proto__', 'constructor', 'a_later_code'])('prints the message of an error with the code %s', (code) => {
  const { message } = toCliError(new LatchkeyError('Refused', { code, status: 400 }));
  expect(message).toBe('Refused. Run it again with --verbose for the response.');
});
