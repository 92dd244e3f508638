import { createAccount } from '../account/account.ts';
import { isEmail, isUsername } from '../account/account-rules.ts';
import type { Command } from './command.ts';
import { accountJson } from './describe.ts';
import { chooseNewPassword, GENERATE, tellNewPassword } from './new-password.ts';
import { Refused } from './outcome.ts';

/** Makes an account, also where sign-up is closed. */
export const createAccountCommand: Command = {
  usage: '--username NAME --email ADDRESS [--generate]',
  summary: 'make an account, also where sign-up is closed',
  positionals: [],
  options: { username: { type: 'string', required: true }, email: { type: 'string', required: true }, ...GENERATE },
  async run(call) {
    const [username, email] = [String(call.values.username), String(call.values.email)];
    if (!isUsername(username)) {
      throw new Refused('username_invalid', 'The username must have 3 to 32 characters: A to Z, a to z, 0 to 9, _ and -.');
    }
    if (!isEmail(email)) throw new Refused('email_invalid', 'The email must be an address, of 254 characters at most.');
    const chosen = await chooseNewPassword(call);
    const account = await createAccount(call.ctx, { username, email, password: chosen.password });
    const told = tellNewPassword(chosen);
    return {
      text: `Made the account ${username} (${email}), id ${account.id}.${told.text}`,
      json: { account: accountJson(account), ...told.json },
    };
  },
};
