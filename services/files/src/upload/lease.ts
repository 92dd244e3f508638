import type { FilesContext } from '../context.ts';
import { errors } from '../errors.ts';
import { type ClaimedIntent, LEASE_S, renewLease } from './upload-intent.store.ts';

/** How often a lease is renewed, in milliseconds: two renewals may fail. */
const RENEWAL_INTERVAL_MS = (LEASE_S * 1000) / 3;

/** A lease that is being held. */
export interface Lease {
  /** Aborts with `upload_timeout` at the deadline, and with `upload_interrupted` once the lease is known to be lost. */
  readonly signal: AbortSignal;
  release(): void;
}

/** Holds the lease of an upload until it is released or its deadline is past. */
export function holdLease({ db, logger }: FilesContext, { id, remainingMs }: ClaimedIntent): Lease {
  const abort = new AbortController();
  const deadline = setTimeout(() => abort.abort(errors.upload_timeout()), Math.max(0, remainingMs));
  const renewal = setInterval(() => {
    renewLease(db, id).then(
      (held) => held || abort.abort(errors.upload_interrupted()),
      (err: unknown) => logger.warn({ err, fileId: id }, 'upload lease not renewed'),
    );
  }, RENEWAL_INTERVAL_MS);
  return {
    signal: abort.signal,
    release() {
      clearTimeout(deadline);
      clearInterval(renewal);
    },
  };
}
