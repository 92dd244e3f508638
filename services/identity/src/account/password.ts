import { CallQueue, queueFull } from '@latchkey/kit/process/call-queue';
import { hash, verify } from '@node-rs/argon2';

/** OWASP's parameters for argon2id, this library's default algorithm: 19 MiB. */
const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1, outputLen: 32 } as const;

/** Each occupies 19 MiB and a thread of the pool that also resolves host names. */
const CONCURRENCY = 2;
const WAITING_MAX = 200;
/**
 * Longest wait of a call, for all its passwords. It leaves time for the change, and for its epochs
 * where Redis does not respond, until the gateway's deadline.
 */
const WAIT_MS = 1_000;

/** A hash that no password has; verifying against it takes as long as against any other. */
const { memoryCost, timeCost, parallelism } = PARAMETERS;
const NO_PASSWORD_HASH = `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${'A'.repeat(22)}$${'A'.repeat(43)}`;

export type Passwords = ReturnType<typeof createPasswords>;

/** The call that needs a password. Once its signal aborts, it gets no result. */
export interface PasswordCall {
  readonly signal: AbortSignal;
  /** When its first password began to wait, as `performance.now()` counts. */
  waitsSince?: number;
}

/**
 * Hashes passwords in PHC format, and verifies them, on other threads. Where there is no hash, as
 * without an account, verifying takes as long.
 * @throws `queue_full` while `waitingMax` passwords wait, or after `waitMs`
 */
export function createPasswords({ concurrency = CONCURRENCY, waitingMax = WAITING_MAX, waitMs = WAIT_MS } = {}) {
  const createError = () => queueFull({ sizePerKey: waitingMax, waitMs });
  const size = concurrency + waitingMax;
  const queue = new CallQueue({ concurrency, concurrencyPerKey: concurrency, size, sizePerKey: size, waitMs }, createError);
  const run = <T>(call: PasswordCall | undefined, work: () => Promise<T>): Promise<T> => {
    queue.check('');
    if (call) call.waitsSince ??= performance.now();
    return queue.run('', async () => {
      call?.signal.throwIfAborted();
      if (performance.now() >= (call?.waitsSince ?? Number.POSITIVE_INFINITY) + waitMs) throw createError();
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
