import type { ApiKey, NewApiKey } from '@latchkey/client';
import { useMutation, useQuery } from '@tanstack/react-query';
import { type ComponentProps, useState } from 'react';
import { latchkey } from '../../api/client.ts';
import { apiKeyQuery, applicationsQuery, requestsQuery } from '../../api/queries.ts';
import { Button } from '../../components/button.tsx';
import { ConfirmButton } from '../../components/confirm-dialog.tsx';
import { DailyCharts } from '../../components/daily-chart.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { QueryView } from '../../components/states.tsx';
import { Versions } from '../../components/versions.tsx';
import { isChangedMeanwhile } from '../../error/explain-error.ts';
import { toast } from '../../toast/toasts.ts';
import { describeValue, nameField } from '../audit-log/describe-entry.ts';
import { KeyForm, readKey } from './key-form.tsx';

interface EditKeyProps {
  /** The key to change; undefined while no dialog is open. */
  readonly apiKey: ApiKey | undefined;
  readonly onClose: () => void;
}

export function EditKeyDialog({ apiKey, onClose }: EditKeyProps) {
  return (
    <Dialog open={apiKey !== undefined} onClose={onClose} stays wide title="Edit API key">
      {apiKey && <SavedKey key={apiKey.id} id={apiKey.id} onClose={onClose} />}
    </Dialog>
  );
}

function SavedKey({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  const query = useQuery(apiKeyQuery(id));
  return <QueryView query={query}>{(saved) => <EditForm saved={saved} onClose={onClose} />}</QueryView>;
}

/** A key of the service, with its entity tag. */
interface Saved {
  readonly apiKey: ApiKey;
  readonly etag: string | undefined;
}

function EditForm({ saved, onClose }: { readonly saved: Saved; readonly onClose: () => void }) {
  // The key that the form began with: others may have changed it since then.
  const [base, setBase] = useState(saved);
  const { apiKey } = base;
  const [own, setOwn] = useState<NewApiKey>();
  const change = useMutation({
    mutationFn: async (values: FormData) => {
      const expected = isConflict ? saved : base;
      const key = readKey(values, apiKey);
      setOwn(key);
      return latchkey.apiKeys.update(apiKey.id, withoutSameExpiry(key, expected.apiKey), { ifMatch: expected.etag });
    },
    onSuccess: ({ name }) => {
      toast.success('API key changed', name);
      onClose();
    },
  });
  // Once a change was rejected, the query has read the key again.
  const isConflict = isChangedMeanwhile(change.error);
  const useSaved = () => {
    setBase(saved);
    change.reset();
  };
  return (
    <>
      <QueryView query={useQuery(requestsQuery(apiKey.id))}>
        {(days) => <DailyCharts caption="Requests by day" days={days} charts={{ Requests: 'requests' }} />}
      </QueryView>
      <KeyForm
        key={base.etag}
        apiKey={apiKey}
        action={isConflict ? 'Replace it with mine' : 'Save changes'}
        submission={change}
        hidesError={isConflict}
        notice={isConflict && own && <Conflict saved={saved.apiKey} own={own} />}
        onCancel={onClose}
      >
        {isConflict ? (
          <Button onClick={useSaved}>Use the saved key</Button>
        ) : (
          <RevokeButton button={<Button variant="dangerOutline">Revoke…</Button>} apiKey={apiKey} onRevoked={onClose} />
        )}
      </KeyForm>
    </>
  );
}

const FIELDS = ['name', 'scopes', 'allApplications', 'applicationIds', 'expiresAt'] as const;

/** Differences, where others changed the key while it was edited. */
function Conflict({ saved, own }: { readonly saved: NewApiKey; readonly own: NewApiKey }) {
  const { data: applications = [] } = useQuery(applicationsQuery);
  const names = new Map(applications.map(({ id, name }) => [id, name]));
  const fields = FIELDS.filter((field) => JSON.stringify(saved[field]) !== JSON.stringify(own[field]));
  const describe = (key: NewApiKey) => fields.map((field) => `${nameField(field)}: ${describeValue(field, key[field], names)}`);
  return <Versions title="The key was changed meanwhile" saved={describe(saved)} own={describe(own)} />;
}

/**
 * The present expiry may have passed while the dialog was open; only others have to be in the
 * future.
 */
function withoutSameExpiry<K extends { readonly expiresAt?: string | null | undefined }>(key: K, { expiresAt: present }: ApiKey) {
  const { expiresAt, ...others } = key;
  return expiresAt === present ? others : key;
}

interface RevokeProps {
  readonly apiKey: ApiKey;
  readonly button: ComponentProps<typeof ConfirmButton>['button'];
  readonly onRevoked?: () => void;
}

export const RevokeButton = ({ apiKey: { id, name }, button, onRevoked }: RevokeProps) => (
  <ConfirmButton
    button={button}
    title={`Revoke ${name}?`}
    action="Revoke API key"
    danger
    done={['API key revoked', name]}
    onConfirm={async () => {
      await latchkey.apiKeys.revoke(id);
      onRevoked?.();
    }}
  >
    Every request with this key is rejected from now on. This cannot be undone.
  </ConfirmButton>
);
