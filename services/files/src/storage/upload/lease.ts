import type { FilesContext } from '../../context.ts';
import { errors } from '../../errors.ts';
import { isDeleted } from '../application/deleted-application.store.ts';
import { type ClaimedIntent, renewLease } from './upload-intent.store.ts';

const RENEWALS = 3;

/**
 * Renews the lease of an upload until it is released. The signal aborts at the deadline with
 * `upload_timeout`, and when the lease is lost: with `application_not_found` where the application
 * was deleted, else with `upload_interrupted`.
 */
export function keepLease({ db, limits, logger }: FilesContext, { id, applicationId, remainingMs }: ClaimedIntent) {
  const abort = new AbortController();
  const renew = async () => {
    if (await renewLease(db, id, limits.uploadLeaseMs)) return;
    abort.abort((await isDeleted(db, applicationId)) ? errors.application_not_found() : errors.upload_interrupted());
  };
  const deadline = setTimeout(() => abort.abort(errors.upload_timeout()), Math.max(0, remainingMs));
  const renewal = setInterval(() => {
    renew().catch((err: unknown) => logger.warn({ err, fileId: id }, 'upload lease not renewed'));
  }, limits.uploadLeaseMs / RENEWALS);
  return {
    signal: abort.signal,
    release() {
      clearTimeout(deadline);
      clearInterval(renewal);
    },
  };
}
