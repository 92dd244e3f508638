import { commonErrors, DomainError } from '@latchkey/kit/errors/errors';
import type { FilesContext } from '../../context.ts';
import type { PutOptions } from '../object-store/object-store.ts';
import type { VerifiedBody } from './verified-body.ts';

/** How long a store may take to stop and clean up after its signal aborted, in milliseconds. */
const GRACE_MS = 2_000;

/** The store goes on after its signal aborted, and may still store something. */
export class Overdue extends Error {
  override readonly name = 'Overdue';
}

/**
 * Stores the body of an upload as an object. Throws why the body failed, or the signal's reason;
 * `dependency_unavailable` where the store failed; Overdue where the store goes on after the signal
 * aborted.
 */
export async function putWithDeadline(
  { store, logger }: Pick<FilesContext, 'store' | 'logger'>,
  { key, body, signal, ...options }: PutOptions & { key: string; body: VerifiedBody; signal: AbortSignal },
): Promise<void> {
  const { promise: overdue, reject } = Promise.withResolvers<never>();
  let timer: NodeJS.Timeout | undefined;
  const onAbort = () => {
    timer = setTimeout(() => reject(new Overdue('not ended in time', { cause: signal.reason })), GRACE_MS);
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  try {
    await Promise.race([store.put(key, body, signal, options), overdue]);
  } catch (err) {
    if (err instanceof Overdue) throw err;
    const reason = body.error ?? (signal.aborted ? signal.reason : undefined);
    if (reason instanceof DomainError) throw reason;
    logger.error({ err, key }, 'object not stored');
    throw commonErrors.dependency_unavailable();
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}
