import { spawnSync } from 'node:child_process';
import { Failure } from './failure.mjs';
import { root } from './paths.mjs';

/** Says where CI compares from: one push or pull request may bring many commits. */
const GIVEN = 'BREAKING_BASELINE';

/**
 * The commit whose protocol the present one must still speak: the one that is given, or the last one while the protocol has uncommitted
 * changes, otherwise the one before it.
 *
 * @returns {{ ref?: string, reason?: string }} the commit, or why there is none to compare with
 */
export function breakingBaseline(env = process.env) {
  const status = git('status', '--porcelain', '--', 'proto');
  if (status === undefined) return { reason: 'as this is no git checkout, or git is missing' };
  const given = env[GIVEN] ?? '';
  // A branch that is new has nothing before it, for which there are zeros.
  const isGiven = given !== '' && !/^0+$/.test(given);
  const commit = find(isGiven ? given : status === '' ? 'HEAD~1' : 'HEAD');
  if (commit === undefined) {
    if (isGiven) throw new Failure(`The commit ${given} of ${GIVEN} is not here to compare the protocol with.`, 1);
    return { reason: 'as there is no earlier commit here' };
  }
  if (!git('ls-tree', commit, 'proto/buf.yaml')) return { reason: 'as the earlier commit has no protocol' };
  return { ref: commit };
}

function find(ref) {
  return git('rev-parse', '--verify', '--quiet', `${ref}^{commit}`);
}

function git(...args) {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  return status === 0 ? stdout.trim() : undefined;
}
