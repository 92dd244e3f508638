import type { CreatedApiKey } from '@latchkey/client';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { latchkey } from '../../api/client.ts';
import { serverUrl } from '../../api/settings.ts';
import { Button } from '../../components/button.tsx';
import { CopyFigure, SecretField } from '../../components/copy-button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Notice } from '../../components/notice.tsx';
import { KeyForm, readKey } from './key-form.tsx';

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
      {created ? <Created created={created} onDone={close} /> : <CreateForm onCreated={setCreated} onCancel={onClose} />}
    </Dialog>
  );
}

interface CreateFormProps {
  readonly onCreated: (key: CreatedApiKey) => void;
  readonly onCancel: () => void;
}

function CreateForm({ onCreated, onCancel }: CreateFormProps) {
  const creation = useMutation({
    mutationFn: async (values: FormData) => latchkey.apiKeys.create(readKey(values)),
    onSuccess: onCreated,
  });
  return <KeyForm submission={creation} action="Create API key" onCancel={onCancel} />;
}

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
