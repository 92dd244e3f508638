import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { orRejectAfter } from '@latchkey/kit/concurrency/within';
import { isDatabaseUnavailable } from '@latchkey/kit/database/database';
import { commonErrors, DomainError, fromConnectError } from '@latchkey/kit/errors/errors';
import type { Logger } from '@latchkey/kit/log/logger';
import type { Counter } from '@latchkey/kit/telemetry/metrics';
import type { FilesContext } from '../../context.ts';
import type { PutOptions } from '../object-store/object-store.ts';
import type { VerifiedBody } from './verified-body.ts';

interface ReceivedBody {
  readonly body: Readable;
  readonly requestId: string;
}

export interface AccountBody extends ReceivedBody {
  readonly accountId: string;
  /** Declared size in bytes. */
  readonly byteSize: number | undefined;
  /** As `x-latchkey-actor` has it; undefined without an actor. */
  readonly actor?: string | undefined;
  /** SHA-256 of the body. */
  readonly checksum?: Buffer | undefined;
  /** Headers of the gateway that identify a call with an idempotency key. */
  readonly idempotency?: Readonly<Record<string, unknown>> | undefined;
}

interface Reception<T> {
  readonly name: 'upload' | 'chunk' | 'avatar';
  readonly logger: Logger;
  readonly toFacts?: (stored: T) => object;
  readonly outcomes?: Counter;
}

/** Has the reception of bodies log and count their ends, and throw domain errors. */
export function observeBodies<B extends ReceivedBody, T extends object>(
  { name, logger, toFacts = (stored) => stored, outcomes }: Reception<T>,
  receive: (received: B) => Promise<T>,
): (received: B) => Promise<T> {
  return async (received) => {
    const { body, requestId } = received;
    const startedAt = performance.now();
    // The body can emit an error before or after it is read; without a listener that would end the
    // process.
    body.on('error', () => undefined);
    const base = () => ({ requestId, ms: Math.round(performance.now() - startedAt) });
    try {
      const stored = await receive(received);
      logger.info({ ...base(), ...toFacts(stored) }, name);
      outcomes?.add(1, 'stored');
      return stored;
    } catch (err) {
      const known = toDomainError(err);
      outcomes?.add(1, known?.reason ?? 'internal');
      if (!known) logger.error({ ...base(), err }, `${name} failed`);
      else logger.info({ ...base(), reason: known.reason, ...(known.cause ? { err: known.cause } : {}) }, `${name} rejected`);
      throw known ?? err;
    }
  };
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
  const settled = new AbortController();
  try {
    const putting = store.put(key, body, signal, options);
    const aborted = signal.aborted ? Promise.resolve() : once(signal, 'abort', settled);
    const toOverdue = () => new Overdue('the store did not stop in time after an abort', { cause: signal.reason });
    await Promise.race([putting, aborted.then(() => orRejectAfter(GRACE_MS, putting, toOverdue))]);
  } catch (err) {
    if (err instanceof Overdue) throw err;
    const reason = body.error ?? (signal.aborted ? signal.reason : undefined);
    if (reason instanceof DomainError) throw reason;
    logger.error({ err, key }, 'object not stored');
    throw commonErrors.dependency_unavailable();
  } finally {
    settled.abort();
  }
}
