import type { Readable } from 'node:stream';
import { isDatabaseUnavailable } from '@latchkey/kit/database/database';
import { commonErrors, DomainError, fromConnectError } from '@latchkey/kit/errors/errors';
import type { Logger } from '@latchkey/kit/log/logger';
import type { FilesContext } from '../../context.ts';
import type { PutOptions } from '../object-store/object-store.ts';
import type { VerifiedBody } from './verified-body.ts';

export interface AccountBody {
  readonly accountId: string;
  readonly body: Readable;
  /** Declared size in bytes. */
  readonly byteSize: number | undefined;
  readonly requestId: string;
  /** As `x-latchkey-actor` has it; undefined without an actor. */
  readonly actor?: string | undefined;
  /** SHA-256 of the body. */
  readonly checksum?: Buffer | undefined;
  /** Headers of the gateway that identify a call with an idempotency key. */
  readonly idempotency?: Readonly<Record<string, unknown>> | undefined;
}

export async function runUploadCall<T extends object>(
  { name, body, requestId, logger }: { name: 'upload' | 'chunk' | 'avatar'; body: Readable; requestId: string; logger: Logger },
  run: () => Promise<T>,
  { facts = (stored) => stored, onEnd }: { facts?: (stored: T) => object; onEnd?: (outcome: string) => void } = {},
): Promise<T> {
  const startedAt = performance.now();
  // The body can emit an error before or after it is read; without a listener that would end the
  // process.
  body.on('error', () => undefined);
  const base = () => ({ requestId, ms: Math.round(performance.now() - startedAt) });
  try {
    const stored = await run();
    logger.info({ ...base(), ...facts(stored) }, name);
    onEnd?.('stored');
    return stored;
  } catch (err) {
    const known = toDomainError(err);
    onEnd?.(known?.reason ?? 'internal');
    if (!known) logger.error({ ...base(), err }, `${name} failed`);
    else logger.info({ ...base(), reason: known.reason, ...(known.cause ? { err: known.cause } : {}) }, `${name} rejected`);
    throw known ?? err;
  }
}

/** The domain error behind an error, or undefined for an unexpected one. */
export function toDomainError(err: unknown): DomainError | undefined {
  return fromConnectError(err) ?? (isDatabaseUnavailable(err) ? commonErrors.dependency_unavailable() : undefined);
}

/** Number of renewals of a lease within its length. */
const RENEWALS = 3;

interface Lease {
  readonly leaseMs: number;
  readonly deadlineMs: number;
  /** False where the lease is lost. */
  renew(): Promise<boolean>;
  /** Reason of the abort once the lease is lost. */
  explainLoss(): Promise<DomainError>;
  onDeadline(abort: (reason: DomainError) => void): void;
}

export function keepLease(logger: Logger, { leaseMs, deadlineMs, renew, explainLoss, onDeadline }: Lease) {
  const ended = new AbortController();
  let isReleased = false;
  const renewOnce = async () => {
    if (await renew()) return;
    const reason = await explainLoss();
    if (!isReleased) ended.abort(reason);
  };
  const deadline = setTimeout(() => onDeadline((reason) => ended.abort(reason)), Math.max(0, deadlineMs));
  const renewal = setInterval(() => {
    renewOnce().catch((err: unknown) => logger.warn({ err }, 'upload lease not renewed'));
  }, leaseMs / RENEWALS);
  const release = () => {
    isReleased = true;
    clearTimeout(deadline);
    clearInterval(renewal);
  };
  return { signal: ended.signal, release };
}

/** Longest time of a store to stop and clean up after its signal aborted, in milliseconds. */
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
    timer = setTimeout(
      () => reject(new Overdue('the store did not stop in time after an abort', { cause: signal.reason })),
      GRACE_MS,
    );
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
