import type { ApplicationListItem, ApplicationPage } from '@latchkey/client';
import { APPLICATION_NAME, describeLength } from '@latchkey/contract/lengths';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { type ReactNode, useCallback } from 'react';
import { latchkey } from '../../api/client.ts';
import { Button } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Form } from '../../components/form.tsx';
import { PageHeader, StatusBadge, Toolbar } from '../../components/page.tsx';
import { Pagination } from '../../components/pagination.tsx';
import { RelativeTime } from '../../components/relative-time.tsx';
import { SearchField } from '../../components/search-field.tsx';
import { EmptyState, QueryView } from '../../components/states.tsx';
import { rowLink, type SortColumn, SortField, secondaryCell, Table } from '../../components/table.tsx';
import { TextField } from '../../components/text-field.tsx';
import { limitsQuery, useLimits } from '../../session/session.ts';
import { toast } from '../../toast/toasts.ts';
import { applicationListQuery, applicationsQuery, type Sort } from './queries.ts';

const route = getRouteApi('/signed-in/applications');

export function ApplicationsPage(): ReactNode {
  const { create = false, ...list } = route.useSearch();
  const query = useQuery(applicationListQuery(list));
  const navigate = route.useNavigate();
  const openCreate = () => navigate({ search: (all) => ({ ...all, create: true }) });
  const closeCreate = () => navigate({ search: ({ create, ...all }) => all, replace: true });
  return (
    <>
      <PageHeader
        title="Applications"
        description={<Usage />}
        action={
          <Button variant="primary" icon="plus" onClick={openCreate}>
            Create application
          </Button>
        }
      />
      <QueryView query={query}>
        {(found) =>
          found.totalPages === 0 && list.search === undefined ? (
            <NoApplications onCreate={openCreate} />
          ) : (
            <ApplicationList found={found} />
          )
        }
      </QueryView>
      <CreateDialog open={create} onClose={closeCreate} />
    </>
  );
}

function Usage() {
  const limits = useLimits();
  if (!limits) return <>Software products that you license.</>;
  const { currentValue, maxValue } = limits.createdApplicationsCount;
  return <>Software products that you license. {maxValue === null ? currentValue : `${currentValue} of ${maxValue}`} used.</>;
}

function NoApplications({ onCreate }: { readonly onCreate: () => void }) {
  const action = (
    <Button variant="primary" icon="plus" onClick={onCreate}>
      Create application
    </Button>
  );
  return (
    <EmptyState icon="applications" title="Create your first application" action={action}>
      An application is a software product that you license. It has a version and a status, which its copies hear of live, license
      levels, private files, and two keys with which the copies connect.
    </EmptyState>
  );
}

const COLUMNS: readonly SortColumn[] = [
  { label: 'Name', sort: 'name' },
  { label: 'Status', sort: 'status' },
  { label: 'Version', sort: 'version' },
  { label: 'Files', sort: 'files', descends: true },
  { label: 'Storage', sort: 'storage', descends: true },
  { label: 'Last change', sort: 'updatedAt', descends: true },
];

function ApplicationList({ found: { applications, totalPages } }: { readonly found: ApplicationPage }) {
  const { search = '', page = 1, sort = 'name' } = route.useSearch();
  const navigate = route.useNavigate();
  const setSearch = useCallback(
    (text: string) =>
      navigate({ search: ({ search, page, ...all }) => (text === '' ? all : { ...all, search: text }), replace: true }),
    [navigate],
  );
  const setPage = (wanted: number) => navigate({ search: (all) => ({ ...all, page: wanted }) });
  const sorting = {
    value: sort,
    onSort: (wanted: string) => navigate({ search: ({ page, ...all }) => ({ ...all, sort: wanted as Sort }), replace: true }),
  };
  return (
    <>
      <Toolbar>
        <SearchField label="Search applications" value={search} onSearch={setSearch} />
        <SortField columns={COLUMNS} {...sorting} />
      </Toolbar>
      {applications.length > 0 && (
        <Table caption="Applications" columns={COLUMNS} sorting={sorting}>
          {applications.map((application) => (
            <Row key={application.id} application={application} />
          ))}
        </Table>
      )}
      {applications.length === 0 && totalPages === 0 && (
        <EmptyState
          icon="search"
          title="No application matches"
          action={<Button onClick={() => setSearch('')}>Clear search</Button>}
        >
          No name contains “{search}”.
        </EmptyState>
      )}
      <Pagination page={page} totalPages={totalPages} onPage={setPage} />
    </>
  );
}

function Row({ application }: { readonly application: ApplicationListItem }) {
  const { id, name, status, version, files, storedMiB, updatedAt } = application;
  return (
    <tr>
      <td>
        <Link to="/applications/$applicationId" params={{ applicationId: id }} className={rowLink} dir="auto">
          {name}
        </Link>
      </td>
      <td data-label="Status">
        <StatusBadge status={status} />
      </td>
      <td data-label="Version" dir="auto">
        {version}
      </td>
      <td data-label="Files">{files}</td>
      <td data-label="Storage" className={secondaryCell}>
        {storedMiB} MiB
      </td>
      <td data-label="Last change" className={secondaryCell}>
        <RelativeTime at={updatedAt} />
      </td>
    </tr>
  );
}

function CreateDialog({ open, onClose }: { readonly open: boolean; readonly onClose: () => void }) {
  return (
    <Dialog open={open} onClose={onClose} title="Create application">
      <CreateForm onClose={onClose} />
    </Dialog>
  );
}

function CreateForm({ onClose }: { readonly onClose: () => void }) {
  const queryClient = useQueryClient();
  const navigate = route.useNavigate();
  const creation = useMutation({
    mutationFn: (name: string) => latchkey.applications.create({ name }),
    onSuccess: async ({ id }, name) => {
      await queryClient.invalidateQueries({ queryKey: applicationsQuery.queryKey });
      void queryClient.invalidateQueries({ queryKey: limitsQuery.queryKey });
      toast.success('Application created', name);
      await navigate({ to: '/applications/$applicationId', params: { applicationId: id } });
    },
  });
  return (
    <Form
      onSubmit={(values) => creation.mutate(String(values.get('name')))}
      error={creation.error}
      action="Create application"
      pending={creation.isPending}
      onCancel={onClose}
    >
      <TextField
        name="name"
        label="Name"
        hint={`${describeLength(APPLICATION_NAME)}. People who license it see this name.`}
        required
        maxLength={2 * APPLICATION_NAME.max}
      />
    </Form>
  );
}
