import { hasLength } from '@latchkey/kit/validation/text';
import { z } from 'zod';

const USERNAME = /^[A-Za-z0-9_-]{3,32}$/;
const EMAIL_LENGTH_MAX = 254;
const PASSWORD_LENGTH_MIN = 10;
const PASSWORD_LENGTH_MAX = 128;

export function isUsername(text: string): boolean {
  return USERNAME.test(text);
}

/** True if the text is an email address by HTML's definition, which is ASCII. */
export function isEmail(text: string): boolean {
  return text.length <= EMAIL_LENGTH_MAX && z.regexes.html5Email.test(text);
}

export function isPassword(text: string): boolean {
  return hasLength(text, PASSWORD_LENGTH_MIN, PASSWORD_LENGTH_MAX);
}

/** True if an account with these could exist. */
export function isSignIn(email: string, password: string): boolean {
  return hasLength(email, 1, EMAIL_LENGTH_MAX) && hasLength(password, 1, PASSWORD_LENGTH_MAX);
}
