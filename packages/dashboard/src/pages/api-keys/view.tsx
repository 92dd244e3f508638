import type { ApiKey, Application } from '@latchkey/client';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { apiKeysQuery, applicationsQuery } from '../../api/queries.ts';
import { CreateButton, IconButton } from '../../components/button.tsx';
import { Choice } from '../../components/choice.tsx';
import { Badge, PageHeader, Toolbar } from '../../components/page.tsx';
import { RelativeTime } from '../../components/relative-time.tsx';
import { EmptyState, QueryView } from '../../components/states.tsx';
import { type Column, rowLink, Table } from '../../components/table.tsx';
import { describeUsage, useLimits } from '../../session/session.ts';
import { CreateKeyDialog, EditKeyDialog, RevokeButton } from './key-dialogs.tsx';
import { KeyTabs } from './key-tabs.tsx';
import { scopesColumn } from './scopes.tsx';

const route = getRouteApi('/signed-in/api-keys');

export function ApiKeysPage() {
  const { data: keys } = useQuery(apiKeysQuery);
  const { create = false, key: keyId } = route.useSearch();
  const navigate = route.useNavigate();
  const usage = describeUsage(useLimits()?.apiKeyCount, 'active');
  const openCreate = () => navigate({ search: ({ key, ...all }) => ({ ...all, create: true }) });
  const close = () => navigate({ search: ({ create, key, ...all }) => all, replace: true });
  const createButton = <CreateButton onClick={openCreate}>Create API key</CreateButton>;
  return (
    <>
      <PageHeader
        title="API keys"
        description={`Credentials for programs and the command line. ${usage}`}
        action={createButton}
      />
      <KeyTabs />
      <QueryView query={apiKeysQuery}>
        {(keys) =>
          keys.length === 0 ? (
            <EmptyState icon="key" title="Let programs work for you" action={createButton}>
              An API key lets a script, a build pipeline or the command line use Latchkey without your password, and only for what
              you allow.
            </EmptyState>
          ) : (
            <KeyList keys={keys} />
          )
        }
      </QueryView>
      <CreateKeyDialog open={create} onClose={close} />
      <EditKeyDialog
        apiKey={keys?.find(({ id, revokedAt, subject }) => id === keyId && revokedAt === null && subject === undefined)}
        onClose={close}
      />
    </>
  );
}

function KeyList({ keys }: { readonly keys: readonly ApiKey[] }) {
  const { all = false } = route.useSearch();
  const navigate = route.useNavigate();
  const { data: applications = [] } = useQuery(applicationsQuery);
  const working = keys.filter((key) => ['active', 'unused'].includes(readState(key)));
  const ended = keys.length - working.length;
  const shown = all ? keys : working;
  const setAll = (checked: boolean) =>
    navigate({ search: ({ all, ...others }) => (checked ? { ...others, all: true } : others), replace: true });
  return (
    <>
      {ended > 0 && (
        <Toolbar>
          <Choice
            label={`Show ${ended} revoked or expired`}
            checked={all}
            onChange={(event) => setAll(event.currentTarget.checked)}
          />
        </Toolbar>
      )}
      {shown.length === 0 ? (
        <EmptyState icon="key" title="No active API key">
          All keys are revoked or expired.
        </EmptyState>
      ) : (
        <Table caption="API keys" columns={listColumns(applications)} items={shown} />
      )}
    </>
  );
}

const UNUSED_MS = 90 * 86_400_000;

const listColumns = (applications: readonly Application[]): ReadonlyArray<Column<ApiKey>> => [
  { label: 'Name', isName: true, cell: (apiKey) => <Name apiKey={apiKey} /> },
  scopesColumn,
  { label: 'Applications', cell: (apiKey) => <span dir="auto">{describeApplications(apiKey, applications)}</span> },
  {
    label: 'Last used',
    cell: ({ lastUsedAt }) => (lastUsedAt === null ? <span className="muted">Never</span> : <RelativeTime at={lastUsedAt} />),
    detail: ({ lastUsedIp }) => lastUsedIp !== null && `from ${lastUsedIp}`,
  },
  {
    label: 'Expires',
    isSecondary: true,
    cell: ({ expiresAt }) => (expiresAt === null ? 'Never' : <RelativeTime at={expiresAt} />),
  },
  {
    label: '',
    cell: (apiKey) =>
      apiKey.revokedAt === null && (
        <RevokeButton button={<IconButton small label={`Revoke ${apiKey.name}`} icon="trash" />} apiKey={apiKey} />
      ),
  },
];

function Name({ apiKey }: { readonly apiKey: ApiKey }) {
  const { id, name, revokedAt, subject, publicId, keyLast4 } = apiKey;
  return (
    <span className="lines">
      <span className="cluster">
        {revokedAt === null && subject === undefined ? (
          <Link to="/api-keys" search={(all) => ({ ...all, key: id })} className={rowLink} dir="auto">
            {name}
          </Link>
        ) : (
          <span dir="auto">{name}</span>
        )}
        <StateBadge state={readState(apiKey)} />
      </span>
      <code className="muted small">{subject ?? `lk_mgmt_${publicId}_…${keyLast4}`}</code>
    </span>
  );
}

/** One that works and was not used for 90 days should perhaps be revoked. */
function readState({ revokedAt, expiresAt, lastUsedAt, createdAt }: ApiKey): 'active' | 'unused' | 'expired' | 'revoked' {
  if (revokedAt !== null) return 'revoked';
  if (expiresAt !== null && Date.parse(expiresAt) <= Date.now()) return 'expired';
  return Date.now() - Date.parse(lastUsedAt ?? createdAt) > UNUSED_MS ? 'unused' : 'active';
}

function StateBadge({ state }: { readonly state: ReturnType<typeof readState> }) {
  if (state === 'revoked') return <Badge>Revoked</Badge>;
  if (state === 'expired') return <Badge kind="danger">Expired</Badge>;
  return state === 'unused' ? <Badge kind="warning">Unused for 90 days</Badge> : null;
}

function describeApplications({ allApplications, applicationIds }: ApiKey, applications: readonly Application[]): string {
  if (allApplications) return 'All';
  const [only, ...others] = applicationIds;
  if (only === undefined) return 'None: they are deleted';
  return others.length > 0 ? `${applicationIds.length} chosen` : (applications.find(({ id }) => id === only)?.name ?? '1 chosen');
}
