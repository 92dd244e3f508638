import { EMAIL_LENGTH_MAX, PASSWORD } from '@latchkey/contract/lengths';
import { USERNAME } from '@latchkey/contract/username';
import { hasLength } from '@latchkey/kit/validation/text';
import { z } from 'zod';

export function isUsername(text: string): boolean {
  return USERNAME.test(text);
}

/** True if the text is an email address by HTML's definition, which is ASCII. */
export function isEmail(text: string): boolean {
  return text.length <= EMAIL_LENGTH_MAX && z.regexes.html5Email.test(text);
}

export function isPassword(text: string): boolean {
  return hasLength(text, PASSWORD.min, PASSWORD.max);
}

export function isSignIn(email: string, password: string): boolean {
  return hasLength(email, 1, EMAIL_LENGTH_MAX) && hasLength(password, 1, PASSWORD.max);
}
