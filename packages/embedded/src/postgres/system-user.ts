import { execFileSync, spawnSync } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { StartError } from '../process/start-error.ts';

export interface SystemUser {
  readonly uid: number;
  readonly gid: number;
}

const CREATED_USER = 'latchkey';

export function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/**
 * The user that PostgreSQL runs as when we are root: the owner of its data, else `postgres`, else a
 * system user that is created.
 *
 * @throws {StartError} when none can be created
 */
export async function chooseUnprivilegedUser(dataDir: string): Promise<SystemUser> {
  const owner = await stat(dataDir).catch(() => undefined);
  if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const user = findUser('postgres') ?? findUser(CREATED_USER) ?? createUser();
  if (user) return user;
  throw new StartError(
    'PostgreSQL does not run as root and no system user could be created for it: start Latchkey as an ordinary user, create a user named postgres, or set DATABASE_URL.',
  );
}

function findUser(name: string): SystemUser | undefined {
  const read = (flag: string) => Number(execFileSync('id', [flag, name], { stdio: ['ignore', 'pipe', 'ignore'] }).toString());
  try {
    const user = { uid: read('-u'), gid: read('-g') };
    return user.uid > 0 ? user : undefined;
  } catch {
    return undefined;
  }
}

function createUser(): SystemUser | undefined {
  const home = ['--no-create-home', '--home-dir', '/nonexistent', '--shell', '/usr/sbin/nologin'];
  spawnSync('useradd', ['--system', '--user-group', ...home, CREATED_USER], { stdio: 'ignore' });
  // Another launcher may have created it at the same time.
  return findUser(CREATED_USER);
}

export function succeedsAs(user: SystemUser, command: string, args: readonly string[]): boolean {
  return spawnSync(command, [...args], { ...user, cwd: '/', stdio: 'ignore', timeout: 10_000 }).status === 0;
}
