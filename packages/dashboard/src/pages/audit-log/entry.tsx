import type { AuditEntry } from '@latchkey/client';
import { Fragment, type ReactNode, useState } from 'react';
import { CopyButton, ShortId } from '../../components/copy-button.tsx';
import { Icon } from '../../components/icon.tsx';
import { formatExact } from '../../components/relative-time.tsx';
import { findIcon, nameAction } from './action-names.ts';
import styles from './audit-log.module.css';
import { describeActor, describeChange, describeValue, type Names, nameField } from './describe-entry.ts';

const timeOfDay = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });

/** One entry: a sentence, and its details on demand. */
export function Entry({ entry, names }: { readonly entry: AuditEntry; readonly names: Names }) {
  const [isOpen, setOpen] = useState(false);
  const { action, at } = entry;
  const what = describeChange(entry, names);
  return (
    <li className={styles.entry}>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <Icon name={findIcon(action)} />
          <span className={`${styles.what} lines`}>
            <span className="strong">
              {nameAction(action)} {what !== undefined && <bdi>{what}</bdi>}
            </span>
            <span className="muted small">{describeActor(entry, names)}</span>
          </span>
          <time className={`${styles.time} muted small`} dateTime={at} title={formatExact(at)}>
            {timeOfDay.format(new Date(at))}
          </time>
          <Icon name="chevronRight" />
        </summary>
        {isOpen && <Details entry={entry} names={names} />}
      </details>
    </li>
  );
}

function Details({ entry, names }: { readonly entry: AuditEntry; readonly names: Names }) {
  const { id, at, action, actor, requestId, subject, applicationId, changes } = entry;
  const rows: ReadonlyArray<readonly [string, ReactNode]> = [
    ['Time', formatExact(at)],
    ['Action', <code key="action">{action}</code>],
    ['Application', applicationId && <Application key="application" id={applicationId} names={names} />],
    [SUBJECTS[subject.kind], <ShortId key="subject" id={subject.id} />],
    [actor.kind === 'api_key' ? 'API key' : 'Session', actor.credentialId && <ShortId key="actor" id={actor.credentialId} />],
    ...Object.entries(changes).map(
      ([name, value]) => [nameField(name), <bdi key={name}>{describeValue(name, value, names.applications)}</bdi>] as const,
    ),
    ['Request', requestId && <Request key="request" id={requestId} />],
    ['Entry', <ShortId key="entry" id={id} />],
  ];
  return (
    <dl className={styles.details}>
      {rows.map(
        ([term, value], index) =>
          value && (
            // Changes may have the name of another row.
            <Fragment key={`${index} ${term}`}>
              <dt>{term}</dt>
              <dd>{value}</dd>
            </Fragment>
          ),
      )}
    </dl>
  );
}

const SUBJECTS: Readonly<Record<AuditEntry['subject']['kind'], string>> = {
  account: 'Account',
  api_key: 'Changed key',
  application: 'Changed application',
  file: 'File',
};

const Request = ({ id }: { readonly id: string }) => (
  <span>
    <code>{id}</code> <CopyButton value={id} label="Copy request id" />
  </span>
);

function Application({ id, names }: { readonly id: string; readonly names: Names }) {
  const name = names.applications.get(id);
  return name === undefined ? <ShortId id={id} /> : <bdi>{name}</bdi>;
}
