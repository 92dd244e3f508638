import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { type DragEvent, useRef, useState } from 'react';
import { filesMetadataQuery, filesQuery } from '../../../api/queries.ts';
import { Button } from '../../../components/button.tsx';
import { FileButton } from '../../../components/file-button.tsx';
import { RelativeTime } from '../../../components/relative-time.tsx';
import { EmptyState, QueryView } from '../../../components/states.tsx';
import { UsageMeter } from '../../../components/usage-meter.tsx';
import { useLimits } from '../../../session/session.ts';
import { classes } from '../../../styles/classes.ts';
import { toast } from '../../../toast/toasts.ts';
import { useApplicationId } from '../use-application-id.ts';
import { FileTable } from './file-table.tsx';
import styles from './files.module.css';
import { UnfinishedUploads } from './unfinished-uploads.tsx';
import { UploadList } from './upload-list.tsx';
import { QUEUE_MAX } from './upload-queue.ts';
import { uploadQueue } from './uploads.ts';

const route = getRouteApi('/signed-in/applications/$applicationId/files');

export function FilesPage() {
  const applicationId = useApplicationId();
  const { page = 1, search = '' } = route.useSearch();
  const upload = (files: readonly File[], folders = 0) => {
    if (folders > 0) toast.failure('Folders are not uploaded', 'Drop the files in them instead.');
    if (uploadQueue.add(applicationId, files) < files.length)
      toast.failure('Too many files', `At most ${QUEUE_MAX} can wait. Add the others later.`);
  };
  const { isOver, handlers } = useDropTarget(upload);
  const button = (
    <FileButton
      button={
        <Button variant="primary" icon="upload">
          Upload files
        </Button>
      }
      label="Files to upload"
      multiple
      onFiles={(files) => upload(files)}
    />
  );
  return (
    <div className={classes(styles.page, 'stack', isOver && styles.dropping)} {...handlers}>
      <Meters />
      <UploadList />
      <UnfinishedUploads />
      <QueryView query={filesQuery(applicationId, page, search)}>
        {(found) =>
          found.totalPages === 0 && search === '' ? (
            <EmptyState icon="file" title="No files yet" action={button}>
              Files are private: your application gets them by short-lived download links. Drop files anywhere here.
            </EmptyState>
          ) : (
            <FileTable found={found} button={button} />
          )
        }
      </QueryView>
    </div>
  );
}

function Meters() {
  const limits = useLimits();
  const { data: metadata } = useQuery(filesMetadataQuery(useApplicationId()));
  if (!limits) return null;
  return (
    <div className={classes(styles.meters, 'meters frame')}>
      <UsageMeter label="Storage of the account" limit={limits.storageSizeMib} unit=" MiB" />
      <UsageMeter label="Files of the account" limit={limits.uploadedFilesCount} />
      {metadata && (
        <div>
          <p>{metadata.totalFiles === 1 ? '1 file' : `${metadata.totalFiles} files`} in this application</p>
          <p className="muted small">
            {metadata.lastUploadedAt === null ? (
              'Nothing uploaded yet'
            ) : (
              <>
                Last upload <RelativeTime at={metadata.lastUploadedAt} />
              </>
            )}
            {` · at most ${limits.fileSizeMiB.toLocaleString('en')} MiB each`}
          </p>
        </div>
      )}
    </div>
  );
}

const hasFiles = ({ dataTransfer }: DragEvent) => dataTransfer.types.includes('Files');

/** Properties of an element that files can be dropped on, and whether some are held over it. */
function useDropTarget(onDrop: (files: readonly File[], folders: number) => void) {
  const [isOver, setOver] = useState(false);
  // Entering a child comes before leaving the parent.
  const depth = useRef(0);
  const enter = (change: number) => {
    depth.current += change;
    setOver(depth.current > 0);
  };
  const handlers = {
    onDragEnter: (event: DragEvent) => hasFiles(event) && enter(1),
    onDragLeave: (event: DragEvent) => hasFiles(event) && enter(-1),
    onDragOver: (event: DragEvent) => hasFiles(event) && event.preventDefault(),
    onDrop: (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      depth.current = 0;
      setOver(false);
      const items = [...event.dataTransfer.items].filter(({ kind }) => kind === 'file');
      const isFolder = (item: DataTransferItem) => item.webkitGetAsEntry?.()?.isDirectory === true;
      const files = items.filter((item) => !isFolder(item)).map((item) => item.getAsFile());
      onDrop(
        files.filter((file) => file !== null),
        items.length - files.length,
      );
    },
  };
  return { isOver, handlers };
}
