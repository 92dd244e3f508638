import { Link } from '@tanstack/react-router';
import { ProgressBar } from '../../../components/usage-meter.tsx';
import styles from './files.module.css';
import type { Upload } from './upload-queue.ts';
import { isActive, useUploadQueue } from './uploads.ts';

const needsPerson = ({ state: { kind } }: Upload) => kind === 'failed' || kind === 'name';

/**
 * Running uploads of all applications, in the frame of every page. A link to where they are listed.
 */
export function UploadIndicator() {
  const { uploads } = useUploadQueue();
  const active = uploads.filter(isActive);
  const shown = active[0] ?? uploads.find(needsPerson);
  if (!shown) return null;
  const running = uploads.find(({ state }) => state.kind === 'running') ?? shown;
  const sentBytes = running.state.kind === 'running' ? running.state.sentBytes : 0;
  const count = (number: number) => (number === 1 ? '1 file' : `${number} files`);
  return (
    <Link
      to="/applications/$applicationId/files"
      params={{ applicationId: shown.applicationId }}
      className={`${styles.indicator} frame`}
    >
      {active.length > 0 ? (
        <>
          <span>Uploading {count(active.length)}</span>
          <ProgressBar label={`Upload of ${running.name}`} max={running.file.size || 1} value={sentBytes} />
        </>
      ) : (
        <span>{count(uploads.filter(needsPerson).length)} not uploaded</span>
      )}
    </Link>
  );
}
