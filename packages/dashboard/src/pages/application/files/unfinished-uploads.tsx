import type { Upload } from '@latchkey/client';
import { useQuery } from '@tanstack/react-query';
import { latchkey } from '../../../api/client.ts';
import { unfinishedQuery } from '../../../api/queries.ts';
import { Button } from '../../../components/button.tsx';
import { ConfirmButton } from '../../../components/confirm-dialog.tsx';
import { FileButton } from '../../../components/file-button.tsx';
import { RelativeTime } from '../../../components/relative-time.tsx';
import { ProgressBar } from '../../../components/usage-meter.tsx';
import { formatBytes } from '../../../format/bytes.ts';
import { toast } from '../../../toast/toasts.ts';
import { useApplicationId } from '../use-application-id.ts';
import styles from './files.module.css';
import { canContinue, isActive, uploadQueue, useUploadQueue } from './uploads.ts';

/** Uploads that an earlier page or another program began and did not finish. */
export function UnfinishedUploads() {
  const applicationId = useApplicationId();
  const own = useUploadQueue().uploads.filter((upload) => upload.applicationId === applicationId && isActive(upload));
  const { data = [] } = useQuery(unfinishedQuery(applicationId, own.length));
  const unfinished = data.filter(({ fileName }) => !own.some(({ name }) => name === fileName));
  if (unfinished.length === 0) return null;
  return (
    <section className="frame" aria-label="Unfinished uploads">
      <div className={`${styles.queueHead} between`}>
        <h2>Unfinished uploads</h2>
      </div>
      <ul>
        {unfinished.map((upload) => (
          <Row key={upload.id} upload={upload} />
        ))}
      </ul>
    </section>
  );
}

function Row({ upload }: { readonly upload: Upload }) {
  const { fileName, byteOffset, byteSize, expiresAt } = upload;
  return (
    <li className={styles.upload}>
      <div className={`${styles.uploadLine} line`}>
        <span className="grow strong">{fileName}</span>
        <span className={styles.actions}>
          {canContinue(upload) && (
            <FileButton
              button={
                <Button small aria-label={`Continue ${fileName}`}>
                  Continue
                </Button>
              }
              label={`File of ${fileName}`}
              onFiles={([file]) => file && continueUpload(upload, file)}
            />
          )}
          <ConfirmButton
            button={
              <Button small aria-label={`End ${fileName}`}>
                End
              </Button>
            }
            title={`End the upload of ${fileName}?`}
            action="End upload"
            danger
            onConfirm={() => latchkey.uploads.end(upload.id)}
          >
            What is stored of it is removed, and its name is free again.
          </ConfirmButton>
        </span>
      </div>
      <ProgressBar label={`Stored of ${fileName}`} max={byteSize} value={byteOffset} />
      <p className={styles.state}>
        <span>
          {formatBytes(byteOffset)} of {formatBytes(byteSize)} stored
        </span>
        <span>
          Expires <RelativeTime at={expiresAt} />
        </span>
        {!canContinue(upload) && <span>Continue it with the program that began it</span>}
      </p>
    </li>
  );
}

/** The client compares the SHA-256, which takes longer. */
function continueUpload({ applicationId, fileName, byteSize, isReplacement }: Upload, file: File): void {
  if (file.size === byteSize) uploadQueue.add(applicationId, [new File([file], fileName)], isReplacement ? 'replace' : 'ask');
  else
    toast.failure(
      'This is another file',
      `${fileName} has ${formatBytes(byteSize)}, and ${file.name} ${formatBytes(file.size)}.`,
    );
}
