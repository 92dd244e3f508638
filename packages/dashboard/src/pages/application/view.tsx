import type { Application } from '@latchkey/client';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, Outlet, useLocation } from '@tanstack/react-router';
import { applicationQuery, settingsQuery } from '../../api/queries.ts';
import { buttonClass } from '../../components/button.tsx';
import { PageHeader, StatusBadge } from '../../components/page.tsx';
import { ShortId } from '../../components/short-id.tsx';
import { EmptyState, QueryView } from '../../components/states.tsx';
import { Tabs, tabLink } from '../../components/tabs.tsx';
import { StatusButton } from './status-button.tsx';

const route = getRouteApi('/signed-in/applications/$applicationId');

export function ApplicationPage() {
  const { applicationId } = route.useParams();
  const query = useQuery(applicationQuery(applicationId));
  return (
    <QueryView page query={query}>
      {(application) => (application ? <Found application={application} /> : <NotFound />)}
    </QueryView>
  );
}

/** Name of the tab, from the path; undefined for the first one. */
function useLastPart(): string | undefined {
  const { pathname } = useLocation();
  return ['Levels', 'Files', 'Releases', 'Live'].find((part) => pathname.endsWith(`/${part.toLowerCase()}`));
}

function Found({ application }: { readonly application: Application }) {
  const { id, name } = application;
  const params = { applicationId: id };
  const part = useLastPart();
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
        <Link to="/applications/$applicationId" params={params} activeOptions={{ exact: true }} {...tabLink}>
          Overview
        </Link>
        <Link to="/applications/$applicationId/levels" params={params} {...tabLink}>
          Levels
        </Link>
        <Link to="/applications/$applicationId/files" params={params} {...tabLink}>
          Files
        </Link>
        <Link to="/applications/$applicationId/releases" params={params} {...tabLink}>
          Releases
        </Link>
        <Link to="/applications/$applicationId/live" params={params} {...tabLink}>
          Live
        </Link>
      </Tabs>
      {/* Inputs of one application never appear at another. */}
      <Outlet key={id} />
    </>
  );
}

function NotFound() {
  return (
    <EmptyState
      page
      icon="search"
      title="There is no such application"
      action={
        <Link to="/applications" className={buttonClass({ variant: 'primary' })}>
          Go to applications
        </Link>
      }
    >
      It may have been deleted, or belong to another account.
    </EmptyState>
  );
}
