import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { CliError } from '../program/errors.ts';

/**
 * Stored by `latchkey login`. All but `url` and `key` is absent for a key from standard input.
 */
export interface Profile {
  readonly url: string;
  readonly key: string;
  readonly keyId?: string;
  readonly keyName?: string;
  readonly username?: string;
  readonly email?: string;
}

export type Profiles = Readonly<Record<string, Profile>>;

export function profilesPath(env: NodeJS.ProcessEnv, platform: NodeJS.Platform = process.platform): string {
  const home = env.HOME ?? homedir();
  if (env.XDG_CONFIG_HOME) return join(env.XDG_CONFIG_HOME, 'latchkey', 'profiles.json');
  if (platform === 'win32') return join(env.APPDATA ?? join(home, 'AppData', 'Roaming'), 'latchkey', 'profiles.json');
  if (platform === 'darwin') return join(home, 'Library', 'Application Support', 'latchkey', 'profiles.json');
  return join(home, '.config', 'latchkey', 'profiles.json');
}

export async function readProfiles(path: string): Promise<Profiles> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (err) {
    const { code } = err as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return {};
    throw new CliError('failed', `${path} can't be read (${code}). Check who owns it.`);
  }
  try {
    const profiles: unknown = JSON.parse(text);
    if (typeof profiles === 'object' && profiles !== null) return profiles as Profiles;
  } catch {
    // The text is not repeated, as it may hold keys.
  }
  throw new CliError('failed', `${path} is damaged. Remove it and run "latchkey login".`);
}

/** Replaces the file in one step, readable by its owner alone. */
export async function writeProfiles(path: string, profiles: Profiles): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await writeFile(temporary, `${JSON.stringify(profiles, null, 2)}\n`, { mode: 0o600, flag: 'wx', flush: true });
    await rename(temporary, path);
  } catch (err) {
    await rm(temporary, { force: true }).catch(() => undefined);
    const { code } = err as NodeJS.ErrnoException;
    throw new CliError('failed', `${path} can't be written (${code}). Check who owns it, or set LATCHKEY_URL and LATCHKEY_KEY.`);
  }
}
