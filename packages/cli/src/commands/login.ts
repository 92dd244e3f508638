import { Command } from 'commander';
import { examples, withContext } from '../command.ts';
import { readProfiles, writeProfiles } from '../config/profiles.ts';
import { CliError } from '../errors.ts';
import type { Io } from '../io.ts';

export function loginGroup(io: Io): readonly Command[] {
  const logout = new Command('logout').description('Forget the key of a profile on this machine').action(
    withContext(io, async (context) => {
      const { [context.profileName]: profile, ...others } = await readProfiles(context.profilesPath);
      if (!profile) throw new CliError('forbidden', `Not signed in: there is no profile "${context.profileName}".`);
      await writeProfiles(context.profilesPath, others);
      context.print({ profile: context.profileName, url: profile.url }, `Signed out of ${profile.url}.`);
    }),
  );
  examples(logout, [['latchkey logout --profile staging', 'Forget the key of the profile "staging"']]);
  return [logout];
}
