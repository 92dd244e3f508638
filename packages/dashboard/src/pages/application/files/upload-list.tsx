import { Button, IconButton } from '../../../components/button.tsx';
import { formatSeconds, useSecondsUntil } from '../../../components/countdown.tsx';
import { ErrorNotice } from '../../../components/notice.tsx';
import { ProgressBar } from '../../../components/usage-meter.tsx';
import { formatBytes } from '../../../format/bytes.ts';
import { classes } from '../../../styles/classes.ts';
import { useApplicationId } from '../use-application-id.ts';
import { numberName } from './file-name.ts';
import styles from './files.module.css';
import { NameForm } from './name-form.tsx';
import { hasEnded, type IfTaken, isRejected, type Upload, type UploadState } from './upload-queue.ts';
import { isActive, uploadQueue, useUploadQueue } from './uploads.ts';

/** The uploads of an application that run, wait, ended, or need another name. */
export function UploadList() {
  const applicationId = useApplicationId();
  const { uploads, pausedUntil } = useUploadQueue();
  const seconds = useSecondsUntil(pausedUntil);
  const own = uploads.filter((upload) => upload.applicationId === applicationId);
  if (own.length === 0) return null;
  const taken = own.filter(isTaken);
  const unnamed = own.filter((upload) => upload.state.kind === 'name' && !isTaken(upload));
  const startAll = (uploads: readonly Upload[], ifTaken: IfTaken) => uploads.map(({ id }) => uploadQueue.start(id, { ifTaken }));
  return (
    <section className="frame" aria-label="Uploads">
      <div className={`${styles.queueHead} between`}>
        <h2>
          <span role="status">{summarize(own)}</span>
        </h2>
        <div className="cluster">
          {unnamed.length > 1 && (
            <Button small onClick={() => startAll(unnamed, 'ask')}>
              Accept all suggested names
            </Button>
          )}
          {taken.length > 1 && (
            <>
              <Button small onClick={() => startAll(taken, 'replace')}>
                Replace all
              </Button>
              <Button small onClick={() => startAll(taken, 'number')}>
                Keep both of all
              </Button>
            </>
          )}
          {own.some(hasEnded) && (
            <Button small variant="ghost" onClick={() => uploadQueue.removeEnded(applicationId)}>
              Clear finished
            </Button>
          )}
        </div>
      </div>
      {seconds > 0 && own.some(isActive) && (
        <p className={classes(styles.upload, styles.state)}>
          Latchkey accepts one upload of an account at a time, and some a minute. The next begins in {formatSeconds(seconds)}.
        </p>
      )}
      {/* Focusable, so that a keyboard scrolls it. */}
      <ul className={styles.uploads} tabIndex={own.length > 5 ? 0 : undefined} aria-label="Uploads">
        {own.map((upload) => (
          <Row key={upload.id} upload={upload} />
        ))}
      </ul>
    </section>
  );
}

const isTaken = ({ state }: Upload) => state.kind === 'name' && state.isTaken === true;

function summarize(uploads: readonly Upload[]): string {
  const count = (kind: Upload['state']['kind']) => uploads.filter(({ state }) => state.kind === kind).length;
  const active = uploads.filter(isActive).length;
  const taken = uploads.filter(isTaken).length;
  const unnamed = count('name') - taken;
  const parts = [
    active > 0 && `Uploading ${active} ${active === 1 ? 'file' : 'files'}`,
    unnamed > 0 && `${unnamed} ${unnamed === 1 ? 'needs' : 'need'} another name`,
    taken > 0 && `${taken} ${taken === 1 ? 'exists' : 'exist'} already`,
    count('failed') > 0 && `${count('failed')} failed`,
    count('done') > 0 && `${count('done')} uploaded`,
  ];
  return parts.filter(Boolean).join(' · ') || 'Uploads';
}

function Row({ upload }: { readonly upload: Upload }) {
  const { id, file, name, state } = upload;
  if (state.kind === 'name') {
    return (
      <li className={styles.upload}>
        <p className={styles.state}>
          <span dir="auto">{file.name}</span> <span>{formatBytes(file.size)}</span>
        </p>
        <p className={classes(styles.state, styles.failed)}>
          {state.problem} {!state.isTaken && 'Upload it with another name:'}
        </p>
        {state.isTaken && <TakenActions id={id} name={name} />}
        <NameForm
          // A name that was taken is another problem than the first one.
          key={state.problem}
          label={`Name for ${file.name}`}
          name={state.isTaken ? numberName(name, 2) : name}
          action="Upload"
          onSubmit={(wanted) => uploadQueue.start(id, { name: wanted })}
          onCancel={() => uploadQueue.remove(id)}
        />
      </li>
    );
  }
  return (
    <li className={styles.upload}>
      <div className={`${styles.uploadLine} line`}>
        <span className="grow strong">{name}</span>
        <RowActions upload={upload} />
      </div>
      {state.kind === 'running' && (
        <ProgressBar label={`Upload of ${name}`} max={file.size || 1} {...(state.sentBytes > 0 && { value: state.sentBytes })} />
      )}
      <StateLine upload={upload} />
    </li>
  );
}

function TakenActions({ id, name }: Pick<Upload, 'id' | 'name'>) {
  return (
    <>
      <div className="cluster">
        <Button small aria-label={`Replace ${name}`} onClick={() => uploadQueue.start(id, { ifTaken: 'replace' })}>
          Replace
        </Button>
        <Button small aria-label={`Keep both of ${name}`} onClick={() => uploadQueue.start(id, { ifTaken: 'number' })}>
          Keep both
        </Button>
      </div>
      <p className={styles.state}>
        A replaced file keeps its id; download links to its old content end. Or upload it with another name:
      </p>
    </>
  );
}

function RowActions({ upload: { id, name, state } }: { readonly upload: Upload }) {
  const canRetry = (state.kind === 'failed' && !isRejected(state)) || state.kind === 'cancelled';
  return (
    <span className={styles.actions}>
      {canRetry && (
        <Button small icon="rotate" aria-label={`Retry ${name}`} onClick={() => uploadQueue.start(id)}>
          Retry
        </Button>
      )}
      {state.kind === 'running' || state.kind === 'waiting' ? (
        <Button small aria-label={`Cancel ${name}`} onClick={() => uploadQueue.cancel(id)}>
          Cancel
        </Button>
      ) : (
        <IconButton small icon="close" label={`Remove ${name} from the list`} onClick={() => uploadQueue.remove(id)} />
      )}
    </span>
  );
}

function StateLine({ upload: { file, ifTaken, state } }: { readonly upload: Upload }) {
  if (state.kind === 'failed') return <ErrorNotice error={state.error} />;
  if (state.kind === 'done')
    return (
      <p className={styles.state}>
        <span className={styles.stored}>{ifTaken === 'replace' ? 'Replaced' : 'Uploaded'}, checksum verified</span>
        <span>{formatBytes(file.size)}</span>
        <span>
          SHA-256 <code>{state.checksum.slice(0, 12)}…</code>
        </span>
      </p>
    );
  return <p className={styles.state}>{state.kind === 'running' ? describeProgress(state, file.size) : LABELS[state.kind]}</p>;
}

const LABELS = { waiting: 'Waiting', cancelled: 'Cancelled', name: '' };

function describeProgress({ sentBytes, bytesPerSecond }: Extract<UploadState, { readonly kind: 'running' }>, size: number) {
  if (sentBytes === 0) return <span>Computing the checksum… {formatBytes(size)}</span>;
  if (sentBytes >= size) return <span>Storing and comparing the checksum…</span>;
  const secondsLeft = bytesPerSecond > 0 ? Math.ceil((size - sentBytes) / bytesPerSecond) : undefined;
  return (
    <>
      <span>
        {formatBytes(sentBytes)} of {formatBytes(size)}
      </span>
      {bytesPerSecond > 0 && <span>{formatBytes(Math.round(bytesPerSecond))}/s</span>}
      {secondsLeft !== undefined && <span>{formatSeconds(secondsLeft)} left</span>}
    </>
  );
}
