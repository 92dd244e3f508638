import { customRandom } from 'nanoid';
import { isPassword } from '../account/account-rules.ts';
import type { CommandCall } from './command.ts';
import { Refused } from './outcome.ts';

/** Letters and digits that nobody takes for one another. */
const ALPHABET = '23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
/** 116 random bits. */
const LENGTH = 20;

/** A password to be, and whether it must be shown because nobody knows it yet. */
export interface NewPassword {
  readonly password: string;
  readonly generated: boolean;
}

/** The option that the commands have which set a password. */
export const GENERATE = { generate: { type: 'boolean' } } as const;

/**
 * Makes the password, or reads it. One that is read never is an argument, which others on the machine could see.
 *
 * @throws {Refused} where it may be none
 */
export async function chooseNewPassword({ ctx, values, readPassword }: CommandCall): Promise<NewPassword> {
  if (values.generate === true) return { password: customRandom(ALPHABET, LENGTH, ctx.random)(), generated: true };
  const password = await readPassword();
  if (password.includes('\0')) throw new Refused('password_invalid', 'The password must not have a NUL character in it.');
  if (!isPassword(password)) throw new Refused('password_invalid', 'The password must have 10 to 128 characters.');
  return { password, generated: false };
}

/** What is told of a password: only of a generated one, and only here. */
export function tellNewPassword({ password, generated }: NewPassword): { readonly text: string; readonly json: object } {
  return generated ? { text: `\nPassword: ${password}`, json: { password } } : { text: '', json: {} };
}
