import { spawnSync } from 'node:child_process';
import { root } from './paths.mjs';

/**
 * The commit whose protocol the present one must still speak: the last one while the protocol has uncommitted changes,
 * otherwise the one before it.
 *
 * @returns {{ ref?: string, reason?: string }} the commit, or why there is none to compare with
 */
export function breakingBaseline() {
  const status = git('status', '--porcelain', '--', 'proto');
  if (status === undefined) return { reason: 'as this is no git checkout, or git is missing' };
  const ref = status === '' ? 'HEAD~1' : 'HEAD';
  const commit = git('rev-parse', '--verify', '--quiet', `${ref}^{commit}`);
  if (commit === undefined) return { reason: 'as there is no earlier commit here' };
  if (!git('ls-tree', commit, 'proto/buf.yaml')) return { reason: 'as the earlier commit has no protocol' };
  return { ref: commit };
}

function git(...args) {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  return status === 0 ? stdout.trim() : undefined;
}
