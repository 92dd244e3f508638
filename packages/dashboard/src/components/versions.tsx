import { Notice } from './notice.tsx';

interface VersionsProps {
  readonly title: string;
  /** Parts of what others saved. */
  readonly saved: readonly string[];
  /** Parts of what the person wants to save. */
  readonly own: readonly string[];
}

/** Both versions of what others changed while it was edited. */
export const Versions = ({ title, saved, own }: VersionsProps) => (
  <Notice kind="warning" title={title}>
    <p>
      Saved now: <bdi>{saved.join('; ')}</bdi>
    </p>
    <p>
      Yours: <bdi>{own.join('; ')}</bdi>
    </p>
  </Notice>
);
