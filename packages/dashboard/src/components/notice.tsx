import { LatchkeyError } from '@latchkey/client';
import { type ReactNode, useSyncExternalStore } from 'react';
import { explainError } from '../error/explain-error.ts';
import { hasSessionEnded, subscribeToSessionEnd } from '../session/session-end.ts';
import { CopyButton } from './copy-button.tsx';
import { formatSeconds, useSecondsUntil } from './countdown.tsx';
import { Icon } from './icon.tsx';
import styles from './notice.module.css';

interface NoticeProps {
  readonly kind?: 'info' | 'warning' | 'danger' | 'success';
  readonly title?: ReactNode;
  readonly children?: ReactNode;
}

/** A message in the flow of a page. Those of kind danger are announced. */
export function Notice({ kind = 'info', title, children }: NoticeProps) {
  const icon = kind === 'success' ? 'check' : kind === 'info' ? 'info' : 'warning';
  return (
    <div className={`${styles.notice} message`} data-tone={kind} role={kind === 'danger' ? 'alert' : undefined}>
      <Icon name={icon} />
      <div className="grow">
        {title && <p className="bold">{title}</p>}
        {children}
      </div>
    </div>
  );
}

/** An error next to what it stopped: what happened, what to do, the request id to copy. */
export function ErrorNotice({ error }: { readonly error: unknown }) {
  const hasEnded = useSyncExternalStore(subscribeToSessionEnd, hasSessionEnded);
  // Once the person has signed in again, nothing is wrong any more.
  if (!hasEnded && error instanceof LatchkeyError && error.status === 401) return null;
  const { title, advice, requestId, retryAt } = explainError(error);
  return (
    <Notice kind="danger" title={title}>
      <p>
        {advice} <RetryTime at={retryAt} />
      </p>
      <RequestId id={requestId} />
    </Notice>
  );
}

/** "You can try again in 12 s.", for a person. */
export function RetryTime({ at }: { readonly at: number | undefined }) {
  const seconds = useSecondsUntil(at);
  if (at === undefined) return null;
  // Announced once, not every second.
  return (
    <span aria-live="off">{seconds > 0 ? `You can try again in ${formatSeconds(seconds)}.` : 'You can try again now.'}</span>
  );
}

export function RequestId({ id }: { readonly id: string | undefined }) {
  if (id === undefined) return null;
  return (
    <p className="cluster small">
      Request <code>{id}</code> <CopyButton value={id} label="Copy request id" />
    </p>
  );
}
