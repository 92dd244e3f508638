import type { CliCommand } from '../program/command.ts';
import type { Context } from '../program/context.ts';
import { checkKey } from '../session/check-key.ts';

export function addWhoami(program: CliCommand): void {
  program
    .command('whoami')
    .description('Show the server, account and key in use')
    .run(whoami)
    .examples(['latchkey whoami --profile staging', 'Check that the key of a profile is valid']);
}

async function whoami(context: Context): Promise<void> {
  const connection = await context.readConnection();
  await checkKey(context.createClient(connection));
  const profile = await context.readProfile();
  const isProfile = profile?.key === connection.key;
  const { username, email, keyName } = (isProfile && profile) || {};
  // The part of a key before its secret.
  const key = connection.key.split('_').slice(0, 3).join('_');
  const data = { url: connection.url, profile: isProfile ? context.profileName : null, username, email, key, keyName };
  context.printFields(data, [
    ['URL', connection.url],
    ['Account', username === undefined ? 'unknown: the key was given' : `${username} <${email}>`],
    ['Key', `${key}_…${keyName === undefined ? '' : ` (${keyName})`}`],
    ['From', isProfile ? `profile "${context.profileName}"` : connection.isExchanged ? 'the token of this job' : 'LATCHKEY_KEY'],
  ]);
}
