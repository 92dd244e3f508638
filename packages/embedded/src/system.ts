import { readFile } from 'node:fs/promises';
import { parseEnv } from 'node:util';

/** What decides how programs are installed here. */
export interface System {
  /** As Node.js has it. */
  readonly platform: string;
  /** The distribution and those that it is like, as `/etc/os-release` has them; empty elsewhere than on Linux. */
  readonly distributions: readonly string[];
}

/** By distribution, in the order in which they are looked for: Fedora has no package `redis` any more. */
const INSTALL_REDIS: ReadonlyArray<readonly [distribution: string, command: string]> = [
  ['debian', 'sudo apt-get install redis-server'],
  ['ubuntu', 'sudo apt-get install redis-server'],
  ['fedora', 'sudo dnf install valkey'],
  ['rhel', 'sudo dnf install valkey'],
  ['alpine', 'sudo apk add redis'],
  ['arch', 'sudo pacman -S valkey'],
  ['suse', 'sudo zypper install redis'],
];

/** The system that this process runs on. */
export async function readSystem(path = '/etc/os-release'): Promise<System> {
  const { ID = '', ID_LIKE = '' } = parseEnv(await readFile(path, 'utf8').catch(() => ''));
  return { platform: process.platform, distributions: `${ID} ${ID_LIKE}`.split(' ').filter((name) => name !== '') };
}

/** What to do about a missing Redis: the part of a sentence that names the command of this system. */
export function adviseRedis({ platform, distributions }: System): string {
  const [, command] = INSTALL_REDIS.find(([distribution]) => distributions.includes(distribution)) ?? [];
  if (platform === 'darwin') return 'install it with `brew install redis`';
  return command === undefined ? 'install redis-server or valkey' : `install it with \`${command}\``;
}
