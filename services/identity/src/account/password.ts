import { CallQueue, queueFull } from '@latchkey/kit/concurrency/call-queue';
import { DEADLINES_MS } from '@latchkey/kit/rpc/deadlines';
import { hash, verify } from '@node-rs/argon2';

/** OWASP's parameters for argon2id, this library's default algorithm: 19 MiB. */
const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1, outputLen: 32 } as const;

/** Each occupies 19 MiB and a thread of the pool that also resolves host names. */
const CONCURRENCY = 2;
const WAITING_MAX = 200;

/** A hash that no password has; verifying against it takes as long as against any other. */
const { memoryCost, timeCost, parallelism } = PARAMETERS;
const NO_PASSWORD_HASH = `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${'A'.repeat(22)}$${'A'.repeat(43)}`;

export type Passwords = ReturnType<typeof createPasswords>;

/** The call that needs a password. Once its signal aborts, it gets no result. */
export interface PasswordCall {
  readonly signal: AbortSignal;
  /** Start of the wait of its first password, as `performance.now()` counts. */
  waitsSince?: number;
}

/**
 * Hashes passwords in PHC format, and verifies them, on other threads. Where there is no hash, as
 * without an account, verifying takes as long.
 * @throws `queue_full` while `waitingMax` passwords wait, or after `waitMs`
 */
export function createPasswords({
  concurrency = CONCURRENCY,
  waitingMax = WAITING_MAX,
  waitMs = (): number => DEADLINES_MS.passwords,
} = {}) {
  const createError = () => queueFull({ sizePerKey: waitingMax, waitMs: waitMs() });
  const size = concurrency + waitingMax;
  const limits = { concurrency, concurrencyPerKey: concurrency, size, sizePerKey: size, waitMs: Number.POSITIVE_INFINITY };
  const queue = new CallQueue(limits, createError);
  const run = <T>(call: PasswordCall | undefined, work: () => Promise<T>): Promise<T> => {
    queue.check('');
    const waitsSince = call?.waitsSince ?? performance.now();
    if (call) call.waitsSince = waitsSince;
    return queue.run('', async () => {
      call?.signal.throwIfAborted();
      if (performance.now() >= waitsSince + waitMs()) throw createError();
      const result = await work();
      call?.signal.throwIfAborted();
      return result;
    });
  };
  return {
    hash: async (password: string, call?: PasswordCall) => run(call, () => hash(canonical(password), PARAMETERS)),
    verify: async (stored: string | undefined, password: string, call?: PasswordCall) =>
      run(call, () => verify(stored ?? NO_PASSWORD_HASH, canonical(password))),
  };
}

/** Keyboards compose the same text in different ways (NIST SP 800-63B, 3.1.1.2). */
function canonical(password: string): string {
  return password.normalize('NFKC');
}
