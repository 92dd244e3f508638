import type { FilesContext } from '../context.ts';
import { errors } from '../errors.ts';
import { type ClaimedIntent, renewLease } from './upload-intent.store.ts';

/** How often a lease is renewed in its time: two renewals may fail. */
const RENEWALS = 3;

/** A lease that is being held. */
export interface Lease {
  /** Aborts with `upload_timeout` at the deadline, and with `upload_interrupted` once the lease is known to be lost. */
  readonly signal: AbortSignal;
  release(): void;
}

/** Holds the lease of an upload until it is released or its deadline is past. */
export function holdLease({ db, limits, logger }: FilesContext, { id, remainingMs }: ClaimedIntent): Lease {
  const abort = new AbortController();
  const deadline = setTimeout(() => abort.abort(errors.upload_timeout()), Math.max(0, remainingMs));
  const renewal = setInterval(() => {
    renewLease(db, id, limits.uploadLeaseMs).then(
      (held) => held || abort.abort(errors.upload_interrupted()),
      (err: unknown) => logger.warn({ err, fileId: id }, 'upload lease not renewed'),
    );
  }, limits.uploadLeaseMs / RENEWALS);
  return {
    signal: abort.signal,
    release() {
      clearTimeout(deadline);
      clearInterval(renewal);
    },
  };
}
