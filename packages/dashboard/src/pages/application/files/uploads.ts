import { LatchkeyError, type Upload as ResumableUpload } from '@latchkey/client';
import { useSyncExternalStore } from 'react';
import { latchkey } from '../../../api/client.ts';
import { limitsQuery } from '../../../api/queries.ts';
import { queryClient } from '../../../api/query-client.ts';
import { isLeavingForSignIn, reportSessionEnd } from '../../../session/session-end.ts';
import { createUploadQueue, type Upload } from './upload-queue.ts';

const MIB = 1_048_576;
/** Larger files are uploaded in chunks, on pages that can hash them. */
const RESUMABLE_BYTES = 10 * MIB;

/** True if this page can continue an upload, whose file it recognizes by the SHA-256. */
export const canContinue = ({ sha256, byteSize }: ResumableUpload) =>
  sha256 !== null && byteSize > RESUMABLE_BYTES && isSecureContext;

export const uploadQueue = createUploadQueue({
  findSizeError({ name, size }) {
    const maxMiB = queryClient.getQueryData(limitsQuery.queryKey)?.fileSizeMiB ?? Number.POSITIVE_INFINITY;
    if (size > 0 && size <= maxMiB * MIB) return undefined;
    // Rounded up: a file above the limit never shows the limit.
    const sizeMiB = (Math.ceil((size * 10) / MIB) / 10).toFixed(1);
    const large = `is too large: it has ${sizeMiB} MiB, and files have at most ${maxMiB} MiB.`;
    const message = size === 0 ? 'is empty: files have at least 1 byte.' : large;
    return new LatchkeyError(`${name} ${message}`, { code: 'invalid_file', details: [{ path: 'file', message }] });
  },
  async isNameFree(applicationId, name, signal, { size }) {
    if (await latchkey.files.isNameFree(applicationId, name, { signal })) return true;
    const unfinished = (await latchkey.uploads.list({ signal })).filter(canContinue);
    return unfinished.some(
      (one) => one.applicationId === applicationId && one.fileName === name && one.byteSize === size && !one.isReplacement,
    );
  },
  send: ({ applicationId, file, name, ifTaken }, options) =>
    latchkey.files.upload(applicationId, file, { ...options, name, replace: ifTaken === 'replace', resume: true }),
  onStored: () => void queryClient.invalidateQueries(),
  onError: (error) => error instanceof LatchkeyError && error.status === 401 && reportSessionEnd(),
});

export const useUploadQueue = () => useSyncExternalStore(uploadQueue.subscribe, uploadQueue.getSnapshot);

export const isActive = ({ state: { kind } }: Upload) => kind === 'waiting' || kind === 'running';

/** Browsers ask before the page with running uploads is left. */
const askBeforeUnload = (event: BeforeUnloadEvent) => isLeavingForSignIn() || event.preventDefault();

uploadQueue.subscribe(() => {
  const change = uploadQueue.getSnapshot().uploads.some(isActive) ? addEventListener : removeEventListener;
  change('beforeunload', askBeforeUnload);
});
