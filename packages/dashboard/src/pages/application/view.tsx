import type { Application } from '@latchkey/client';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, Outlet, useLocation } from '@tanstack/react-router';
import { useState } from 'react';
import { applicationQuery, settingsQuery } from '../../api/queries.ts';
import { Button } from '../../components/button.tsx';
import { ConfirmDialog } from '../../components/confirm-dialog.tsx';
import { ShortId } from '../../components/copy-button.tsx';
import { PageHeader, StatusBadge } from '../../components/page.tsx';
import { NotFound, QueryView } from '../../components/states.tsx';
import { Tabs, tabLink } from '../../components/tabs.tsx';
import { useAction } from '../../toast/use-action.ts';
import { changeSetting } from './change-setting.ts';

const route = getRouteApi('/signed-in/applications/$applicationId');

export function ApplicationPage() {
  const { applicationId } = route.useParams();
  return (
    <QueryView page query={applicationQuery(applicationId)}>
      {(application) =>
        application ? (
          <Found application={application} />
        ) : (
          <NotFound title="There is no such application">It may have been deleted, or belong to another account.</NotFound>
        )
      }
    </QueryView>
  );
}

/** Tabs, which are pages. */
const PARTS = {
  Overview: '/applications/$applicationId',
  Levels: '/applications/$applicationId/levels',
  Files: '/applications/$applicationId/files',
  Releases: '/applications/$applicationId/releases',
  Live: '/applications/$applicationId/live',
} as const;

function Found({ application }: { readonly application: Application }) {
  const { id, name } = application;
  const { pathname } = useLocation();
  const part = Object.keys(PARTS).find((label) => pathname.endsWith(`/${label.toLowerCase()}`));
  const settings = useQuery(settingsQuery(id)).data?.settings;
  return (
    <>
      <PageHeader
        title={name}
        part={part}
        description={
          <>
            {settings && <StatusBadge status={settings.status} />} <ShortId id={id} />
          </>
        }
        action={settings && <StatusButton application={application} status={settings.status} />}
      />
      <Tabs label={`Parts of ${name}`}>
        {Object.entries(PARTS).map(([label, to]) => (
          <Link key={to} to={to} params={{ applicationId: id }} activeOptions={{ exact: label === 'Overview' }} {...tabLink}>
            {label}
          </Link>
        ))}
      </Tabs>
      {/* Inputs of one application never appear at another. */}
      <Outlet key={id} />
    </>
  );
}

interface StatusButtonProps {
  readonly application: Application;
  readonly status: 'online' | 'paused';
}

/** Pauses after a confirmation, as live clients hear of it; resumes without one. */
function StatusButton({ application: { id, name }, status }: StatusButtonProps) {
  const [isAsking, setAsking] = useState(false);
  const change = (seen: 'online' | 'paused', value: 'online' | 'paused') =>
    changeSetting({ applicationId: id, field: 'status', seen, value });
  const resume = useAction(() => change('paused', 'online'), 'The application was not resumed', ['Application resumed', name]);
  const isPaused = status === 'paused';
  return (
    <>
      {/* One button, which so keeps the focus. */}
      <Button
        variant={isPaused ? 'primary' : 'secondary'}
        pending={resume.isPending}
        onClick={() => (isPaused ? resume.mutate() : setAsking(true))}
      >
        {isPaused ? 'Resume' : 'Pause'}
      </Button>
      <ConfirmDialog
        open={isAsking}
        onClose={() => setAsking(false)}
        title={`Pause ${name}?`}
        action="Pause application"
        done={['Application paused', name]}
        onConfirm={() => change('online', 'paused')}
      >
        Connected clients are notified that the application is paused. They stay connected, and hear when you resume it.
      </ConfirmDialog>
    </>
  );
}
