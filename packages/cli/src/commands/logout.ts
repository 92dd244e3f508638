import { readProfiles, writeProfiles } from '../config/profiles.ts';
import type { CliCommand } from '../program/command.ts';
import type { Context } from '../program/context.ts';
import { CliError } from '../program/errors.ts';
import { type SessionOptions, withSession } from '../session/session.ts';

interface LogoutOptions extends SessionOptions {
  readonly revoke?: boolean;
}

export function addLogout(program: CliCommand): void {
  program
    .command('logout')
    .description('Forget the key of a profile on this machine')
    .option('--revoke', 'first revoke the key, which needs the password')
    .sessionOptions()
    .run(logout)
    .examples(
      ['latchkey logout', 'Forget the key, which stays valid until it is revoked'],
      ['latchkey logout --revoke --profile staging', 'Revoke the key of a profile, and forget it'],
    );
}

async function logout(context: Context, options: LogoutOptions): Promise<void> {
  const { profileName, profilesPath } = context;
  const { [profileName]: profile, ...others } = await readProfiles(profilesPath);
  if (!profile) throw new CliError('forbidden', `There is no profile "${profileName}", so there is nothing to forget.`);
  const { url, keyId, keyName } = profile;
  const revoked = options.revoke === true;
  if (revoked) {
    if (keyId === undefined) throw new CliError('usage', 'The id of the key is unknown. Use "latchkey api-keys revoke <key>".');
    await withSession(context, options, (client) => client.apiKeys.revoke(keyId), url);
  }
  await writeProfiles(profilesPath, others);
  const name = keyName === undefined ? 'the key' : `key "${keyName}"`;
  const end = revoked
    ? `Revoked and forgot ${name} for ${url}.`
    : `Forgot ${name} for ${url}. It stays valid until it is revoked.`;
  context.print({ profile: profileName, url, revoked }, end);
}
