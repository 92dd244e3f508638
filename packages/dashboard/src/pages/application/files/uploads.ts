import { LatchkeyError } from '@latchkey/client';
import { useSyncExternalStore } from 'react';
import { latchkey } from '../../../api/client.ts';
import { queryClient } from '../../../api/query-client.ts';
import { limitsQuery } from '../../../session/session.ts';
import { isLeavingForSignIn, reportSessionEnd } from '../../../session/session-end.ts';
import { invalidateFiles } from './queries.ts';
import { type Upload, UploadQueue } from './upload-queue.ts';

export const uploadQueue = new UploadQueue({
  sizeMiBMax: () => queryClient.getQueryData(limitsQuery.queryKey)?.fileSizeMiB,
  isNameFree: (applicationId, name, signal) => latchkey.files.isNameFree(applicationId, name, { signal }),
  send: ({ applicationId, file, name, ifTaken }, options) =>
    latchkey.files.upload(applicationId, file, { ...options, name, replace: ifTaken === 'replace' }),
  onStored: ({ applicationId }) => void invalidateFiles(queryClient, applicationId),
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
