import { accessSync, constants, existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { modulesDir } from './paths.mjs';

/**
 * The environment for the package managers, which keep caches in the home folder. Where there is none, or none that can
 * be written to, a folder of the checkout takes its place.
 *
 * @param {(line: string) => void} tell
 */
export function installEnv(tell) {
  const home = findHome();
  if (isWritable(home)) return { ...process.env, HOME: home };
  const substitute = join(modulesDir, '.cache', 'home');
  mkdirSync(substitute, { recursive: true });
  tell(
    home === undefined
      ? 'There is no home folder, so downloads are kept in node_modules.'
      : `The home folder ${home} can't be written to, so downloads are kept in node_modules.`,
  );
  const env = { ...process.env, HOME: substitute };
  const userConfig = home === undefined ? undefined : join(home, '.npmrc');
  if (userConfig && existsSync(userConfig)) env.npm_config_userconfig ??= userConfig;
  // npm start has told us its own cache, which is below the home folder too.
  delete env.npm_config_cache;
  return env;
}

function findHome() {
  if (process.env.HOME) return process.env.HOME;
  try {
    return homedir() || undefined;
  } catch {
    // The user has no entry in the system's list, as is usual in containers.
    return undefined;
  }
}

function isWritable(path) {
  if (path === undefined) return false;
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
