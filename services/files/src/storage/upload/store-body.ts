import { commonErrors, DomainError } from '@latchkey/kit/errors/errors';
import type { FilesContext } from '../../context.ts';
import type { PutOptions } from '../object-store/object-store.ts';
import type { UploadBody } from './upload-body.ts';

/** How long a store may take to stop and clean up after it was told to, in milliseconds. */
const GRACE_MS = 2_000;

/** Work goes on after its signal aborted, and may still have effects; the cause is the reason. */
export class Overdue extends Error {
  override readonly name = 'Overdue';
}

/**
 * Stores the body of an upload as an object.
 *
 * @throws DomainError why the body failed, or the signal's reason; `dependency_unavailable` where
 *   the store failed; {@link Overdue} where the store goes on after the signal aborted
 */
export async function storeBody(
  { store, logger }: Pick<FilesContext, 'store' | 'logger'>,
  { key, body, signal, ...options }: PutOptions & { key: string; body: UploadBody; signal: AbortSignal },
): Promise<void> {
  try {
    await unlessOverdue(store.put(key, body, signal, options), signal);
  } catch (err) {
    if (err instanceof Overdue) throw err;
    const reason = body.error ?? (signal.aborted ? signal.reason : undefined);
    if (reason instanceof DomainError) throw reason;
    logger.error({ err, key }, 'object not stored');
    throw commonErrors.dependency_unavailable();
  }
}

/** Waits for work that a signal ends; throws {@link Overdue} where it does not in time. */
async function unlessOverdue<T>(work: Promise<T>, signal: AbortSignal, graceMs = GRACE_MS): Promise<T> {
  const { promise: overdue, reject } = Promise.withResolvers<never>();
  let timer: NodeJS.Timeout | undefined;
  const onAbort = () => {
    timer = setTimeout(() => reject(new Overdue('not ended in time', { cause: signal.reason })), graceMs);
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work, overdue]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}
