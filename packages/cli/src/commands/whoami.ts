import { Command } from 'commander';
import { examples, withContext } from '../program/command.ts';
import type { Io } from '../program/io.ts';
import { checkKey } from '../session/check-key.ts';

export function whoamiCommand(io: Io): Command {
  const command = new Command('whoami').description('Show the server, account and key in use').action(
    withContext(io, async (context) => {
      const connection = await context.readConnection();
      await checkKey(context.keyClient(connection));
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
        [
          'From',
          isProfile ? `profile "${context.profileName}"` : connection.isExchanged ? 'the token of this job' : 'LATCHKEY_KEY',
        ],
      ]);
    }),
  );
  return examples(command, [['latchkey whoami --profile staging', 'Check that the key of a profile is valid']]);
}
