import type { Application, ConnectionState, LiveEvent } from '@latchkey/client';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { applicationQuery } from '../../../api/queries.ts';
import { Button } from '../../../components/button.tsx';
import { formatSeconds, useSecondsUntil } from '../../../components/countdown.tsx';
import { ErrorNotice, Notice } from '../../../components/notice.tsx';
import { Badge, Toolbar } from '../../../components/page.tsx';
import { RelativeTime } from '../../../components/relative-time.tsx';
import { EmptyState } from '../../../components/states.tsx';
import { type Column, Table } from '../../../components/table.tsx';
import { useApplicationId } from '../use-application-id.ts';
import { useLiveEvents } from './use-live-events.ts';

export function Live() {
  const { data: application } = useQuery(applicationQuery(useApplicationId()));
  return application ? <Events application={application} /> : null;
}

function Events({ application }: { readonly application: Application }) {
  const { events, state, error, retry, clear } = useLiveEvents(application);
  return (
    <>
      <Toolbar>
        <Connection state={state} />
        {state.state === 'ended' && <Button onClick={retry}>Connect again</Button>}
        {events.length > 0 && <Button onClick={clear}>Clear</Button>}
      </Toolbar>
      {error &&
        (error.code.startsWith('socket_key') ? <Notice kind="danger" title={error.message} /> : <ErrorNotice error={error} />)}
      {events.length === 0 ? (
        <EmptyState icon="log" title="No events in the last 24 hours">
          Pause the application or change its version, here or elsewhere: events sent to clients appear here immediately.
        </EmptyState>
      ) : (
        <Table caption="Events, the newest first" columns={COLUMNS} items={events} />
      )}
    </>
  );
}

function Connection({ state }: { readonly state: ConnectionState | { readonly state: 'ended' } }) {
  const retryAt = useMemo(() => (state.state === 'waiting' ? Date.now() + state.delayMs : undefined), [state]);
  const seconds = useSecondsUntil(retryAt);
  return (
    <div role="status">
      {state.state === 'connected' && <Badge kind="success">Connected</Badge>}
      {state.state === 'connecting' && <Badge>Connecting…</Badge>}
      {state.state === 'waiting' && (
        <>
          <Badge kind="warning">Reconnecting</Badge> {state.reason}.{' '}
          <span aria-live="off">Next attempt in {formatSeconds(seconds)}.</span>
        </>
      )}
      {state.state === 'ended' && <Badge kind="danger">Disconnected</Badge>}
    </div>
  );
}

const COLUMNS: ReadonlyArray<Column<LiveEvent>> = [
  { label: 'Sequence', cell: ({ sequence }) => <code>{sequence ?? '–'}</code> },
  { label: 'Event', cell: nameEvent },
  { label: 'Details', cell: (event) => <span dir="auto">{describeChange(event)}</span> },
  { label: 'Time', cell: ({ time }) => <RelativeTime at={time} /> },
];

/** The type in words: `latchkey.application.version_changed` is "Version changed". */
function nameEvent({ type }: LiveEvent): string {
  if (type === 'latchkey.connection.ready') return 'Connected';
  const words = type.replace(/^latchkey\.(?:application|connection)\./, '').replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function describeChange(event: LiveEvent): string {
  if (event.type === 'latchkey.connection.ready') return `${event.data.status}, version ${event.data.version}`;
  if (event.type !== 'latchkey.application.version_changed') return '';
  return `${event.data.previousVersion} → ${event.data.version}`;
}
