import type { TrustedIssuer } from '@latchkey/client';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { latchkey } from '../../api/client.ts';
import { trustedIssuersQuery } from '../../api/queries.ts';
import { Button, CreateButton, IconButton } from '../../components/button.tsx';
import { ConfirmButton } from '../../components/confirm-dialog.tsx';
import { CopyFigure } from '../../components/copy-button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { PageHeader } from '../../components/page.tsx';
import { EmptyState, QueryView } from '../../components/states.tsx';
import { type Column, rowLink, Table } from '../../components/table.tsx';
import styles from '../api-keys/api-keys.module.css';
import { KeyTabs } from '../api-keys/key-tabs.tsx';
import { scopesColumn } from '../api-keys/scopes.tsx';
import { TEMPLATES } from './templates.ts';
import { TrustForm } from './trust-issuer.tsx';

const route = getRouteApi('/signed-in/api-keys/trusted-issuers');

export function TrustedIssuersPage() {
  const { create = false, issuer } = route.useSearch();
  const navigate = route.useNavigate();
  const trusted = useQuery(trustedIssuersQuery).data?.find(({ id }) => id === issuer);
  const show = (search: { readonly create?: true; readonly issuer?: string }) => navigate({ search, replace: create });
  const createButton = <CreateButton onClick={() => show({ create: true })}>Trust an issuer</CreateButton>;
  return (
    <>
      <PageHeader
        title="Trusted issuers"
        description="CI servers whose jobs get keys for their tokens, so that no key is stored there."
        action={createButton}
      />
      <KeyTabs />
      <QueryView query={trustedIssuersQuery}>
        {(issuers) =>
          issuers.length === 0 ? (
            <EmptyState icon="key" title="Let CI jobs work without a stored key" action={createButton}>
              GitHub, GitLab and Kubernetes give each job a signed token. Trust the one of your repository or service account, and
              its jobs exchange it for a key that expires within 15 minutes.
            </EmptyState>
          ) : (
            <Table caption="Trusted issuers" columns={COLUMNS} items={issuers} />
          )
        }
      </QueryView>
      <Dialog
        open={create}
        onClose={() => show({})}
        stays
        wide
        title="Trust an issuer"
        description="Jobs whose token has these claims get a key that expires soon. No key is stored at the CI server."
      >
        <TrustForm onCancel={() => show({})} onCreated={({ id }) => show({ issuer: id })} />
      </Dialog>
      <Dialog
        open={trusted !== undefined}
        onClose={() => show({})}
        wide
        title={trusted && `Set up jobs of ${trusted.name}`}
        description="None of this is a secret. The command line finds the token of the job and exchanges it."
      >
        <div className="stack">
          <CopyFigure
            name="Configuration"
            text={(trusted && TEMPLATES.find(({ isOf }) => isOf(trusted))?.toJob(trusted)) ?? ''}
          />
          <div className="cluster end">
            <Button variant="primary" onClick={() => show({})}>
              Done
            </Button>
          </div>
        </div>
      </Dialog>
    </>
  );
}

const COLUMNS: ReadonlyArray<Column<TrustedIssuer>> = [
  {
    label: 'Name',
    isName: true,
    cell: ({ id, name }) => (
      <Link to="/api-keys/trusted-issuers" search={{ issuer: id }} className={rowLink} dir="auto">
        {name}
      </Link>
    ),
    detail: ({ issuer }) => issuer,
  },
  {
    label: 'Tokens with',
    cell: ({ claims }) => (
      <span className="lines">
        {Object.entries(claims).map(([claim, value]) => (
          <code key={claim} className="muted small">
            {claim}={String(value)}
          </code>
        ))}
      </span>
    ),
  },
  {
    ...scopesColumn,
    detail: ({ allApplications, applicationIds }) => (
      <span className={styles.words}>
        {allApplications ? 'All applications' : `${applicationIds.length} chosen applications`}
      </span>
    ),
  },
  {
    label: 'Key lifetime',
    cell: ({ lifetimeSeconds: seconds }) => (seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`),
  },
  {
    label: '',
    cell: ({ id, name }) => (
      <ConfirmButton
        button={<IconButton small icon="trash" label={`Stop trusting ${name}`} />}
        title={`Stop trusting ${name}?`}
        action="Stop trusting"
        danger
        done={['Issuer no longer trusted', name]}
        onConfirm={() => latchkey.trustedIssuers.remove(id)}
      >
        Its jobs get no more keys, and those that they have are rejected from now on.
      </ConfirmButton>
    ),
  },
];
