import type { Application } from '@latchkey/client';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, Outlet, useLocation } from '@tanstack/react-router';
import { applicationQuery, settingsQuery } from '../../api/queries.ts';
import { PageHeader, StatusBadge } from '../../components/page.tsx';
import { ShortId } from '../../components/short-id.tsx';
import { NotFound, QueryView } from '../../components/states.tsx';
import { Tabs, tabLink } from '../../components/tabs.tsx';
import { StatusButton } from './status-button.tsx';

const route = getRouteApi('/signed-in/applications/$applicationId');

export function ApplicationPage() {
  const { applicationId } = route.useParams();
  const query = useQuery(applicationQuery(applicationId));
  return (
    <QueryView page query={query}>
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
