import type { Readable } from 'node:stream';
import { isDatabaseUnavailable } from '@latchkey/kit/database/database';
import { commonErrors, type DomainError, fromConnectError } from '@latchkey/kit/errors/errors';
import type { Logger } from '@latchkey/kit/log/logger';

export interface UploadCall<T> {
  readonly name: 'upload' | 'avatar';
  readonly body: Readable;
  readonly requestId: string;
  readonly logger: Logger;
  /** What the log line of a stored upload says of it. */
  readonly facts: (stored: T) => object;
  readonly onEnd?: (outcome: string) => void;
}

/**
 * Runs one call of the data path and logs its outcome. Throws DomainError, or an unexpected error.
 */
export async function runUploadCall<T>(call: UploadCall<T>, run: () => Promise<T>): Promise<T> {
  const { name, body, requestId, logger, facts, onEnd } = call;
  const startedAt = performance.now();
  // It may break off before it is read and after.
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
