import { hostname } from 'node:os';
import type { AccountProfile, Latchkey } from '@latchkey/client';
import { SCOPES } from '@latchkey/contract/scopes';
import { type Profile, readProfiles, writeProfiles } from '../config/profiles.ts';
import { readStdin } from '../output/stdin.ts';
import type { CliCommand } from '../program/command.ts';
import { type Context, DEFAULT_URL } from '../program/context.ts';
import { CliError } from '../program/errors.ts';
import { checkKey } from '../session/check-key.ts';
import { endSessionAfter, readPassword, type SessionOptions, signIn } from '../session/session.ts';

const KEY_NAME_MAX = 64;
const LOOPBACK = /^(localhost|127\.[\d.]+|\[::1\])$/;

interface LoginOptions extends SessionOptions {
  readonly url?: string;
  readonly signUp?: boolean;
  readonly username?: string;
  readonly keyStdin?: boolean;
}

export function addLogin(program: CliCommand): void {
  program
    .command('login')
    .summary('Sign in on this machine')
    .description('Create a management key for this machine and store it in a profile')
    .option('--url <url>', 'URL of the REST interface (LATCHKEY_URL)')
    .option('--sign-up', 'create the account first')
    .option('--username <name>', 'name of the new account, with --sign-up')
    .option('--key-stdin', 'use an existing key: read it from standard input, or ask on a terminal')
    .sessionOptions()
    .run(login)
    .examples(
      ['latchkey login', 'Ask for URL, email and password'],
      ['latchkey login --profile staging --url https://panel.example.com', 'Store it in a separate profile'],
      ['latchkey login --url https://panel.example.com --key-stdin < key.txt', 'Use an existing, perhaps restricted key'],
    );
}

async function login(context: Context, options: LoginOptions): Promise<void> {
  const stored = await context.readProfile();
  const url = await readUrl(context, options, stored);
  if (options.keyStdin) return loginWithKey(context, url, (await readKey(context)).trim());
  const { client, account } = await openSession(context, url, options, stored);
  await endSessionAfter(client, async () => {
    const key = await client.apiKeys.create({ name: keyName(), scopes: [...SCOPES], allApplications: true });
    const { username, email } = account;
    const profile = { url, key: key.plaintextKey, keyId: key.id, keyName: key.name, username, email };
    try {
      await store(context, profile);
    } catch (err) {
      // A key that is stored nowhere is of no use to anyone but a thief.
      const next = `Run "latchkey api-keys revoke ${key.id}".`;
      await client.apiKeys.revoke(key.id).catch(() => context.note(`The new key could not be revoked. ${next}`));
      throw err;
    }
    await revokeFormer(client, stored, profile);
    const { plaintextKey: _, ...record } = key;
    context.print(record, `Signed in to ${url} as ${username}.\nKey "${key.name}" is stored in ${context.profilesPath}.`);
  });
}

async function readUrl(context: Context, { url }: LoginOptions, stored: Profile | undefined): Promise<string> {
  const question = { message: 'URL of Latchkey', option: '--url <url>', what: 'the URL' };
  const text =
    url ?? (context.io.env.LATCHKEY_URL || undefined) ?? (await context.prompts.text(question, stored?.url ?? DEFAULT_URL));
  // Throws for text that is not a URL.
  context.createClient({ url: text });
  const { protocol, hostname } = new URL(text);
  if (protocol === 'http:' && !LOOPBACK.test(hostname))
    context.note(`Warning: ${text} is not encrypted. Use https:// if you can.`);
  return text.replace(/\/+$/, '');
}

async function openSession(context: Context, url: string, options: LoginOptions, stored: Profile | undefined) {
  const client = context.createClient({ url });
  const askUsername = { message: 'User name', option: '--username <name>', what: 'the user name' };
  const username = options.signUp ? (options.username ?? (await context.prompts.text(askUsername))) : '';
  const askEmail = { message: 'Email', option: '--email <email>', what: 'the email' };
  const email = options.email ?? (await context.prompts.text(askEmail, stored?.email));
  const proof = await readPassword(context, options, options.signUp);
  const account: AccountProfile = options.signUp
    ? (await client.account.signUp({ username, email, password: proof.password })).account
    : await signIn(context, client, { email, ...proof });
  return { client, account };
}

/** A new login replaces the key that the profile had for the same account. */
async function revokeFormer(client: Latchkey, former: Profile | undefined, { url, email }: Profile): Promise<void> {
  if (former?.keyId === undefined || former.url !== url || former.email !== email) return;
  await client.apiKeys.revoke(former.keyId).catch(() => undefined);
}

function readKey({ io: { stdin }, prompts }: Context): Promise<string> {
  if (!stdin.isTTY) return readStdin(stdin);
  return prompts.password({ message: 'Management key', option: '< key.txt', what: 'the key' });
}

async function loginWithKey(context: Context, url: string, key: string): Promise<void> {
  if (key === '') throw new CliError('usage', 'Standard input is empty. Pipe the key: latchkey login --key-stdin < key.txt');
  await checkKey(context.createClient({ url, key }));
  await store(context, { url, key });
  context.print({ url }, `The key for ${url} is stored in ${context.profilesPath}.`);
}

async function store(context: Context, profile: Profile): Promise<void> {
  const profiles = await readProfiles(context.profilesPath);
  await writeProfiles(context.profilesPath, { ...profiles, [context.profileName]: profile });
}

function keyName(): string {
  return [...`latchkey on ${hostname()}`].slice(0, KEY_NAME_MAX).join('').trim();
}
