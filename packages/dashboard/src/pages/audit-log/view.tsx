import type { AuditEntry } from '@latchkey/client';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { type AuditFilter, apiKeysQuery, applicationsQuery, auditLogQuery, toAuditQuery } from '../../api/queries.ts';
import { Button } from '../../components/button.tsx';
import { SelectField } from '../../components/form.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { PageHeader } from '../../components/page.tsx';
import { SearchField } from '../../components/search-field.tsx';
import { EmptyState, ErrorState, Skeleton } from '../../components/states.tsx';
import { ACTION_GROUPS } from './action-names.ts';
import styles from './audit-log.module.css';
import { matchesText, type Names } from './describe-entry.ts';
import { Entry } from './entry.tsx';
import { ExportButtons } from './export-buttons.tsx';

const route = getRouteApi('/signed-in/audit-log');

export function AuditLogPage() {
  const { search = '', ...filter } = route.useSearch();
  const navigate = route.useNavigate();
  const setSearch = (text: string) =>
    navigate({ search: ({ search, ...all }) => (text === '' ? all : { ...all, search: text }), replace: true });
  return (
    <>
      <PageHeader title="Audit log" description="Who changed what, newest first. Entries cannot be changed here." />
      <div className={`${styles.toolbar} cluster`}>
        <SearchField label="Search shown entries" value={search} onSearch={setSearch} />
        <Filters filter={filter} />
        <ExportButtons filter={filter} />
      </div>
      <Entries filter={filter} search={search} />
    </>
  );
}

function Filters({ filter: { application = '', action = '' } }: { readonly filter: AuditFilter }) {
  const navigate = route.useNavigate();
  const { data: applications = [] } = useQuery(applicationsQuery);
  const isGone = application !== '' && !applications.some(({ id }) => id === application);
  const deleted = isGone ? [[application, 'A deleted application'] as const] : [];
  return (
    <>
      <SelectField
        name="application"
        label="Application"
        value={application}
        onChange={({ currentTarget: { value } }) => navigate({ search: value === '' ? {} : { application: value } })}
        options={[['', 'All applications'], ...deleted, ...applications.map(({ id, name }) => [id, name] as const)]}
      />
      <SelectField
        name="action"
        label="Action"
        value={application === '' ? action : ''}
        onChange={({ currentTarget: { value } }) => navigate({ search: value === '' ? {} : { action: value } })}
        options={[['', 'All actions']]}
      >
        {ACTION_GROUPS.map(([group, actions]) => (
          <optgroup key={group} label={group}>
            {actions.map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </optgroup>
        ))}
      </SelectField>
    </>
  );
}

function Entries({ filter, search }: { readonly filter: AuditFilter; readonly search: string }) {
  const query = useInfiniteQuery(auditLogQuery(filter));
  const { data, error, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = query;
  const names = useNames();
  if (!data) return error ? <ErrorState error={error} onRetry={refetch} /> : <Skeleton lines={8} />;
  const all = data.pages.flatMap((page) => page.entries);
  const entries = all.filter((entry) => search === '' || matchesText(entry, names, search));
  if (all.length === 0) return <NoEntries isFiltered={Object.keys(toAuditQuery(filter)).length > 0} />;
  return (
    <>
      {entries.length === 0 && (
        <p role="status">
          None of the {all.length} shown entries contains “{search}”.
        </p>
      )}
      {groupByDay(entries).map(([day, ofDay]) => (
        <section key={day} aria-label={day}>
          <h2 className={`${styles.day} muted small`}>{day}</h2>
          <ul className="frame">
            {ofDay.map((entry) => (
              <Entry key={entry.id} entry={entry} names={names} />
            ))}
          </ul>
        </section>
      ))}
      {error && <ErrorNotice error={error} />}
      <p className="visually-hidden" role="status">
        {entries.length} entries{hasNextPage ? '' : ', all of them'}
      </p>
      {hasNextPage && (
        <div className={`${styles.more} cluster`}>
          <Button pending={isFetchingNextPage} onClick={() => fetchNextPage()}>
            {isFetchingNextPage ? 'Loading…' : 'Show older entries'}
          </Button>
        </div>
      )}
    </>
  );
}

function NoEntries({ isFiltered }: { readonly isFiltered: boolean }) {
  const navigate = route.useNavigate();
  const clear = <Button onClick={() => navigate({ search: {} })}>Clear filter</Button>;
  return (
    <EmptyState icon="log" title={isFiltered ? 'No entry matches' : 'No entries yet'} action={isFiltered && clear}>
      {isFiltered
        ? 'Nothing of this kind was done in the time that the log goes back.'
        : 'Each change of this account appears here.'}
    </EmptyState>
  );
}

function useNames(): Names {
  const { data: applications } = useQuery(applicationsQuery);
  const { data: apiKeys } = useQuery(apiKeysQuery);
  return {
    applications: new Map(applications?.map(({ id, name }) => [id, name])),
    apiKeys: new Map(apiKeys?.map(({ id, name }) => [id, name])),
  };
}

const dayFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'full' });

const groupByDay = (entries: readonly AuditEntry[]) => [...Map.groupBy(entries, ({ at }) => dayFormat.format(new Date(at)))];
