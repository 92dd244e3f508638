import { commonErrors } from '@latchkey/kit/errors/errors';
import { hash, verify } from '@node-rs/argon2';
import pLimit from 'p-limit';

/** OWASP's parameters for argon2id, this library's default algorithm: 19 MiB. */
const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1, outputLen: 32 } as const;

/** Each occupies 19 MiB and a thread of the pool that also resolves host names. */
const CONCURRENCY = 2;
const WAITING_MAX = 200;

/** A hash that no password has; verifying against it takes as long as against any other. */
const { memoryCost, timeCost, parallelism } = PARAMETERS;
const NO_PASSWORD_HASH = `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${'A'.repeat(22)}$${'A'.repeat(43)}`;

export type Passwords = ReturnType<typeof createPasswords>;

/**
 * Hashes passwords in PHC format, and verifies them, on other threads. Where there is no hash, as
 * without an account, verifying takes as long.
 * @throws `dependency_unavailable` while `waitingMax` passwords wait
 */
export function createPasswords({ concurrency = CONCURRENCY, waitingMax = WAITING_MAX } = {}) {
  const limit = pLimit(concurrency);
  const run = async <T>(work: () => Promise<T>): Promise<T> => {
    if (limit.activeCount + limit.pendingCount >= concurrency + waitingMax) throw commonErrors.dependency_unavailable();
    return limit(work);
  };
  return {
    hash: (password: string) => run(() => hash(canonical(password), PARAMETERS)),
    verify: (stored: string | undefined, password: string) => run(() => verify(stored ?? NO_PASSWORD_HASH, canonical(password))),
  };
}

/** Keyboards compose the same text in different ways (NIST SP 800-63B, 3.1.1.2). */
function canonical(password: string): string {
  return password.normalize('NFKC');
}
