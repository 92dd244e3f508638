import type { Application } from '@latchkey/client';
import { APPLICATION_NAME, describeLength } from '@latchkey/contract/lengths';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { type ReactNode, useCallback } from 'react';
import { latchkey } from '../../api/client.ts';
import { Button } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Form } from '../../components/form.tsx';
import { PageHeader, Toolbar } from '../../components/page.tsx';
import { RelativeTime } from '../../components/relative-time.tsx';
import { SearchField } from '../../components/search-field.tsx';
import { ShortId } from '../../components/short-id.tsx';
import { EmptyState, QueryView } from '../../components/states.tsx';
import { rowLink, secondaryCell, Table } from '../../components/table.tsx';
import { TextField } from '../../components/text-field.tsx';
import { limitsQuery, useLimits } from '../../session/session.ts';
import { toast } from '../../toast/toasts.ts';
import { applicationsQuery } from './queries.ts';

const route = getRouteApi('/signed-in/applications');

export function ApplicationsPage(): ReactNode {
  const query = useQuery(applicationsQuery);
  const { search = '', create = false } = route.useSearch();
  const navigate = route.useNavigate();
  const openCreate = () => navigate({ search: (all) => ({ ...all, create: true }) });
  const closeCreate = () => navigate({ search: ({ create, ...all }) => all, replace: true });
  const setSearch = useCallback(
    (text: string) => navigate({ search: text === '' ? {} : { search: text }, replace: true }),
    [navigate],
  );
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
        {(applications) =>
          applications.length === 0 ? (
            <NoApplications onCreate={openCreate} />
          ) : (
            <ApplicationList applications={applications} search={search} onSearch={setSearch} />
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

interface ApplicationListProps {
  readonly applications: readonly Application[];
  readonly search: string;
  readonly onSearch: (text: string) => void;
}

function ApplicationList({ applications, search, onSearch }: ApplicationListProps) {
  const wanted = search.trim().toLowerCase();
  const found = applications.filter(({ name, id }) => name.toLowerCase().includes(wanted) || id === wanted);
  return (
    <>
      <Toolbar>
        <SearchField label="Search applications" value={search} onSearch={onSearch} />
        <span role="status">{wanted !== '' && `${found.length} of ${applications.length}`}</span>
      </Toolbar>
      {found.length === 0 ? (
        <EmptyState
          icon="search"
          title="No application matches"
          action={<Button onClick={() => onSearch('')}>Clear search</Button>}
        >
          No name contains “{search}”.
        </EmptyState>
      ) : (
        <Table caption="Applications" columns={['Name', 'Id', 'Keys changed']}>
          {found.map((application) => (
            <Row key={application.id} application={application} />
          ))}
        </Table>
      )}
    </>
  );
}

function Row({ application: { id, name, applicationApiKeys } }: { readonly application: Application }) {
  return (
    <tr>
      <td>
        <Link to="/applications/$applicationId" params={{ applicationId: id }} className={rowLink} dir="auto">
          {name}
        </Link>
      </td>
      <td data-label="Id">
        <ShortId id={id} label={`Copy id of ${name}`} />
      </td>
      <td data-label="Keys changed" className={secondaryCell}>
        <RelativeTime at={applicationApiKeys.updatedAt} />
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
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary" pending={creation.isPending}>
            Create application
          </Button>
        </>
      }
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
