import type { ApplicationListItem, ApplicationPage } from '@latchkey/client';
import { APPLICATION_NAME, describeLength } from '@latchkey/contract/lengths';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { latchkey } from '../../api/client.ts';
import { applicationListQuery, type Sort } from '../../api/queries.ts';
import { Button, CreateButton } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Form, TextField } from '../../components/form.tsx';
import { PageHeader, StatusBadge, Toolbar } from '../../components/page.tsx';
import { RelativeTime } from '../../components/relative-time.tsx';
import { SearchField } from '../../components/search-field.tsx';
import { EmptyState, QueryView } from '../../components/states.tsx';
import { type Column, Pagination, rowLink, Table } from '../../components/table.tsx';
import { describeUsage, useLimits } from '../../session/session.ts';
import { toast } from '../../toast/toasts.ts';

const route = getRouteApi('/signed-in/applications');

export function ApplicationsPage(): ReactNode {
  const { create = false, ...list } = route.useSearch();
  const usage = describeUsage(useLimits()?.createdApplicationsCount, 'used');
  const navigate = route.useNavigate();
  const openCreate = () => navigate({ search: (all) => ({ ...all, create: true }) });
  const createButton = <CreateButton onClick={openCreate}>Create application</CreateButton>;
  const closeCreate = () => navigate({ search: ({ create, ...all }) => all, replace: true });
  return (
    <>
      <PageHeader title="Applications" description={`Software products that you license. ${usage}`} action={createButton} />
      <QueryView query={applicationListQuery(list)}>
        {(found) =>
          found.totalPages === 0 && list.search === undefined ? (
            <EmptyState icon="applications" title="Create your first application" action={createButton}>
              An application is a software product that you license. It has a version and a status, which its copies hear of live,
              license levels, private files, and two keys with which the copies connect.
            </EmptyState>
          ) : (
            <ApplicationList found={found} />
          )
        }
      </QueryView>
      <Dialog open={create} onClose={closeCreate} title="Create application">
        <CreateForm onClose={closeCreate} />
      </Dialog>
    </>
  );
}

const COLUMNS: ReadonlyArray<Column<ApplicationListItem>> = [
  {
    label: 'Name',
    sort: 'name',
    isName: true,
    cell: ({ id, name }) => (
      <Link to="/applications/$applicationId" params={{ applicationId: id }} className={rowLink} dir="auto">
        {name}
      </Link>
    ),
  },
  { label: 'Status', sort: 'status', cell: ({ status }) => <StatusBadge status={status} /> },
  { label: 'Version', sort: 'version', cell: ({ version }) => <span dir="auto">{version}</span> },
  { label: 'Files', sort: 'files', descends: true, cell: ({ files }) => files },
  { label: 'Storage', sort: 'storage', descends: true, isSecondary: true, cell: ({ storedMiB }) => `${storedMiB} MiB` },
  {
    label: 'Last change',
    sort: 'updatedAt',
    descends: true,
    isSecondary: true,
    cell: ({ updatedAt }) => <RelativeTime at={updatedAt} />,
  },
];

function ApplicationList({ found: { applications, totalPages } }: { readonly found: ApplicationPage }) {
  const { search = '', page = 1, sort = 'name' } = route.useSearch();
  const navigate = route.useNavigate();
  const setSearch = (text: string) =>
    navigate({ search: ({ search, page, ...all }) => (text === '' ? all : { ...all, search: text }), replace: true });
  const setPage = (wanted: number) => navigate({ search: (all) => ({ ...all, page: wanted }) });
  const sorting = {
    value: sort,
    onSort: (wanted: string) => navigate({ search: ({ page, ...all }) => ({ ...all, sort: wanted as Sort }), replace: true }),
  };
  return (
    <>
      <Toolbar>
        <SearchField label="Search applications" value={search} onSearch={setSearch} />
      </Toolbar>
      {applications.length > 0 && <Table caption="Applications" columns={COLUMNS} items={applications} sorting={sorting} />}
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

function CreateForm({ onClose }: { readonly onClose: () => void }) {
  const navigate = route.useNavigate();
  const create = (values: FormData) => latchkey.applications.create({ name: String(values.get('name')) });
  const open = async ({ id }: { readonly id: string }, values: FormData) => {
    toast.success('Application created', String(values.get('name')));
    await navigate({ to: '/applications/$applicationId', params: { applicationId: id } });
  };
  return (
    <Form onSubmit={create} onDone={open} action="Create application" onCancel={onClose}>
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
