import { commonErrors } from '@latchkey/kit/errors';
import { hash, verify } from '@node-rs/argon2';
import pLimit from 'p-limit';

/** OWASP's parameters for argon2id, which is this library's default algorithm. */
const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1, outputLen: 32 } as const;

/** A hash that no password has. Verifying against it takes as long as against any other. */
const NO_PASSWORD_HASH = [
  '$argon2id$v=19',
  `m=${PARAMETERS.memoryCost},t=${PARAMETERS.timeCost},p=${PARAMETERS.parallelism}`,
  base64(Buffer.alloc(16)),
  base64(Buffer.alloc(PARAMETERS.outputLen)),
].join('$');

/** Hashes and verifies passwords on other threads, a few at once (decisions 4). */
export interface Passwords {
  /** @returns argon2id in PHC format */
  hash(password: string): Promise<string>;
  /** @param stored the account's hash; undefined, where there is no account, is refused in the same time */
  verify(stored: string | undefined, password: string): Promise<boolean>;
}

/**
 * Both functions throw `dependency_unavailable` when `waitingMax` are waiting already.
 *
 * @param atOnce passwords worked on at the same time
 */
export function createPasswords({ atOnce, waitingMax }: { atOnce: number; waitingMax: number }): Passwords {
  const limit = pLimit(atOnce);
  const run = async <T>(work: () => Promise<T>): Promise<T> => {
    if (limit.activeCount + limit.pendingCount >= atOnce + waitingMax) throw commonErrors.dependency_unavailable();
    return limit(work);
  };
  return {
    hash: (password) => run(() => hash(canonical(password), PARAMETERS)),
    verify: (stored, password) => run(() => verify(stored ?? NO_PASSWORD_HASH, canonical(password))),
  };
}

/** One form for the different ways in which keyboards compose the same text (NIST SP 800-63B, 3.1.1.2). */
function canonical(password: string): string {
  return password.normalize('NFKC');
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '');
}
