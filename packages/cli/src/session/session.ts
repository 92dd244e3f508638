import { type AccountProfile, type Credentials, type Latchkey, LatchkeyError } from '@latchkey/client';
import { readStdin } from '../output/stdin.ts';
import type { Context } from '../program/context.ts';
import { CliError } from '../program/errors.ts';
import { stopSignal } from '../program/signals.ts';

export interface SessionOptions {
  readonly email?: string;
  readonly passwordStdin?: boolean;
}

/**
 * Signs in, runs this, and signs out: management keys can neither manage keys nor read the audit
 * log, and nothing that can is stored.
 */
export async function withSession<T>(
  context: Context,
  options: SessionOptions,
  use: (client: Latchkey, signal: AbortSignal) => Promise<T>,
  url?: string,
): Promise<T> {
  const profile = await context.readProfile();
  const client = context.createClient({ url: url ?? (await context.readUrl()) });
  const email =
    options.email ??
    profile?.email ??
    (await context.prompts.text({ message: 'Email', option: '--email <email>', what: 'the email' }));
  await signIn(context, client, { email, ...(await readPassword(context, options)) });
  return endSessionAfter(client, (signal) => use(client, signal));
}

/** @param isNew the password of a new account, which a terminal asks for twice */
export async function readPassword(
  { io, prompts }: Context,
  { passwordStdin }: SessionOptions,
  isNew = false,
): Promise<Omit<Credentials, 'email'>> {
  if (passwordStdin) {
    const [password = '', code] = (await readStdin(io.stdin)).split(/\r?\n/);
    return { password, ...(code?.trim() && { code: code.trim() }) };
  }
  const ask = (message: string) => prompts.password({ message, option: '--password-stdin', what: 'the password' });
  const password = await ask('Password');
  if (isNew && (await ask('The same password again')) !== password)
    throw new CliError('usage', 'The passwords differ. Run it again.');
  return { password };
}

export async function signIn(context: Context, client: Latchkey, credentials: Credentials): Promise<AccountProfile> {
  try {
    return (await client.account.signIn(credentials)).account;
  } catch (err) {
    if (!(err instanceof LatchkeyError)) throw err;
    if (err.code === 'two_factor_required' && credentials.code === undefined) {
      const question = {
        message: 'Code of the authenticator app',
        option: 'the code as the second line of standard input',
        what: 'the code',
      };
      return signIn(context, client, { ...credentials, code: await context.prompts.password(question) });
    }
    if (err.code === 'unauth') throw new CliError('forbidden', 'The email or the password is wrong. Try again.');
    if (err.code === 'bad_request' && credentials.code !== undefined)
      throw new CliError('forbidden', 'The code is wrong or was used before. Wait for the next one.');
    throw err;
  }
}

/** The session also ends when this fails or is interrupted, which aborts the signal. */
export async function endSessionAfter<T>(client: Latchkey, use: (signal: AbortSignal) => Promise<T>): Promise<T> {
  try {
    return await use(stopSignal());
  } finally {
    // It expires by itself, and an error before this one matters more.
    await client.account.signOut().catch(() => undefined);
  }
}
