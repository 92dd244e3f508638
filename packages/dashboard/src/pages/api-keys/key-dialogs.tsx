import type { ApiKey, CreatedApiKey, NewApiKey } from '@latchkey/client';
import { useMutation, useQuery } from '@tanstack/react-query';
import { type ComponentProps, useState } from 'react';
import { latchkey } from '../../api/client.ts';
import { apiKeyQuery, applicationsQuery, requestsQuery } from '../../api/queries.ts';
import { serverUrl } from '../../api/settings.ts';
import { Button } from '../../components/button.tsx';
import { ConfirmButton } from '../../components/confirm-dialog.tsx';
import { CopyFigure, SecretField } from '../../components/copy-button.tsx';
import { DailyCharts } from '../../components/daily-chart.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Form, MutationForm } from '../../components/form.tsx';
import { Notice } from '../../components/notice.tsx';
import { QueryView } from '../../components/states.tsx';
import { Versions } from '../../components/versions.tsx';
import { isChangedMeanwhile } from '../../error/explain-error.ts';
import { toast } from '../../toast/toasts.ts';
import { describeValue, nameField } from '../audit-log/describe-entry.ts';
import { KeyFields, readKey } from './key-fields.tsx';

export function CreateKeyDialog({ open, onClose }: { readonly open: boolean; readonly onClose: () => void }) {
  const [created, setCreated] = useState<CreatedApiKey>();
  const close = () => {
    setCreated(undefined);
    onClose();
  };
  return (
    <Dialog
      open={open || created !== undefined}
      // The key is shown this once: only its button closes it.
      onClose={created ? () => undefined : close}
      stays
      wide
      title={created ? 'Copy the key now' : 'Create API key'}
      description={created ? undefined : 'Programs use it in place of your password. It may do only what you choose here.'}
    >
      {created ? (
        <Created created={created} onDone={close} />
      ) : (
        <Form onSubmit={createKey} onDone={setCreated} action="Create API key" onCancel={onClose}>
          <KeyFields />
        </Form>
      )}
    </Dialog>
  );
}

const createKey = (values: FormData) => latchkey.apiKeys.create(readKey(values));

function Created({ created, onDone }: { readonly created: CreatedApiKey; readonly onDone: () => void }) {
  const login = `latchkey login --url ${serverUrl} --key-stdin`;
  return (
    <div className="stack">
      <Notice kind="warning" title="The key is shown this once">
        Store it where your program reads its secrets. If it is lost, create another one and revoke this one.
      </Notice>
      <SecretField name="API key" value={created.plaintextKey} prefixLength={'lk_mgmt_'.length} />
      <p>To use it on the command line, run this, and paste the key when it asks:</p>
      <CopyFigure name="Command" text={login} />
      <div className="cluster end">
        <Button variant="primary" onClick={onDone}>
          I have stored the key
        </Button>
      </div>
    </div>
  );
}

interface EditKeyProps {
  /** The key to change; undefined while no dialog is open. */
  readonly apiKey: ApiKey | undefined;
  readonly onClose: () => void;
}

export function EditKeyDialog({ apiKey, onClose }: EditKeyProps) {
  return (
    <Dialog open={apiKey !== undefined} onClose={onClose} stays wide title="Edit API key">
      {apiKey && (
        <QueryView key={apiKey.id} query={apiKeyQuery(apiKey.id)}>
          {(saved) => <EditForm saved={saved} onClose={onClose} />}
        </QueryView>
      )}
    </Dialog>
  );
}

/** A key of the service, with its entity tag. */
type Saved = Awaited<ReturnType<typeof latchkey.apiKeys.read>>;

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
      <QueryView query={requestsQuery(apiKey.id)}>
        {(days) => <DailyCharts caption="Requests by day" days={days} charts={{ Requests: 'requests' }} />}
      </QueryView>
      <MutationForm
        key={base.etag}
        action={isConflict ? 'Replace it with mine' : 'Save changes'}
        submission={change}
        hidesError={isConflict}
        onCancel={onClose}
        others={
          isConflict ? (
            <Button onClick={useSaved}>Use the saved key</Button>
          ) : (
            <RevokeButton button={<Button variant="dangerOutline">Revoke…</Button>} apiKey={apiKey} onRevoked={onClose} />
          )
        }
      >
        <KeyFields apiKey={apiKey} />
        {isConflict && own && <Conflict saved={saved.apiKey} own={own} />}
      </MutationForm>
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
