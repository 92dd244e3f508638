import { execFileSync, spawnSync } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { StartError } from './start-error.ts';

/** A user of this machine that a server runs as. */
export interface SystemUser {
  readonly uid: number;
  readonly gid: number;
}

const CREATED_USER = 'latchkey';

/** Whether we are root, and so have to give up rights for a server that refuses to run as root. */
export function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/**
 * The user PostgreSQL runs as when we are root: whoever owns the data there is, else `postgres`, else a system user
 * that is created for it.
 *
 * @throws {StartError} when there is none and none can be created.
 */
export async function chooseUnprivilegedUser(dataDir: string): Promise<SystemUser> {
  const owner = await stat(dataDir).catch(() => undefined);
  if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const user = lookUp('postgres') ?? lookUp(CREATED_USER) ?? createUser();
  if (user) return user;
  throw new StartError(
    'PostgreSQL does not run as root and no system user could be created for it: start Latchkey as an ordinary user, create a user named postgres, or set DATABASE_URL.',
  );
}

function lookUp(name: string): SystemUser | undefined {
  try {
    const ask = (flag: string) =>
      Number(execFileSync('id', [flag, name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
    const user = { uid: ask('-u'), gid: ask('-g') };
    return user.uid > 0 ? user : undefined;
  } catch {
    return undefined;
  }
}

function createUser(): SystemUser | undefined {
  spawnSync(
    'useradd',
    ['--system', '--user-group', '--no-create-home', '--home-dir', '/nonexistent', '--shell', '/usr/sbin/nologin', CREATED_USER],
    { stdio: 'ignore' },
  );
  // Two launchers may have tried at once: what counts is that the user is there now.
  return lookUp(CREATED_USER);
}

/** Whether a command succeeds for this user, from the root folder. */
export function succeedsAs(user: SystemUser, command: string, args: readonly string[]): boolean {
  const result = spawnSync(command, [...args], { uid: user.uid, gid: user.gid, cwd: '/', stdio: 'ignore', timeout: 10_000 });
  return result.status === 0;
}
