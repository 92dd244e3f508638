import type { Command } from './command.ts';
import { createAccountCommand } from './create-account.ts';
import { listAccountsCommand } from './list-accounts.ts';
import { listKeysCommand } from './list-keys.ts';
import { listLinksCommand } from './list-links.ts';
import { resetPasswordCommand } from './reset-password.ts';
import { revokeKeyCommand } from './revoke-key.ts';
import { signOutCommand } from './sign-out.ts';
import { twoFactorOffCommand } from './two-factor-off.ts';
import { unlinkCommand } from './unlink.ts';

/** The commands by name, in the order of the help. */
export const COMMANDS: Readonly<Record<string, Command>> = {
  list: listAccountsCommand,
  create: createAccountCommand,
  'reset-password': resetPasswordCommand,
  'two-factor-off': twoFactorOffCommand,
  'sign-out': signOutCommand,
  'list-keys': listKeysCommand,
  'revoke-key': revokeKeyCommand,
  'list-links': listLinksCommand,
  unlink: unlinkCommand,
};
