import { SIGNING_KEY, SIGNING_KEY_RULE } from '@latchkey/contract/release';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { latchkey } from '../../../api/client.ts';
import { IconButton } from '../../../components/button.tsx';
import { ConfirmButton } from '../../../components/confirm-dialog.tsx';
import { Form } from '../../../components/form.tsx';
import { Section } from '../../../components/page.tsx';
import { QueryView } from '../../../components/states.tsx';
import { TextField } from '../../../components/text-field.tsx';
import { releaseSettingsQuery } from './queries.ts';
import styles from './releases.module.css';

interface SigningKeysProps {
  readonly applicationId: string;
}

/** Public keys of minisign, by one of which each file of a release is signed. */
export function SigningKeys({ applicationId }: SigningKeysProps) {
  const settings = releaseSettingsQuery(applicationId);
  const queryClient = useQueryClient();
  const change = async (edit: (keys: readonly string[]) => string[]) => {
    // The list is replaced as a whole: others may have added a key.
    const { signingKeys } = await queryClient.fetchQuery({ ...settings, staleTime: 0 });
    const changed = await latchkey.releases.updateSettings(applicationId, { signingKeys: edit(signingKeys) });
    queryClient.setQueryData(settings.queryKey, changed);
  };
  return (
    <Section
      title="Signing keys"
      description="With one at least, a release is published only if each of its files has a signature by one of them."
    >
      <QueryView query={useQuery(settings)}>
        {({ signingKeys }) => signingKeys.map((key) => <SigningKey key={key} publicKey={key} change={change} />)}
      </QueryView>
      <AddKey change={change} />
    </Section>
  );
}

interface ChangeProps {
  readonly change: (edit: (keys: readonly string[]) => string[]) => Promise<void>;
}

const SigningKey = ({ publicKey, change }: ChangeProps & { readonly publicKey: string }) => (
  <div className={styles.line}>
    <code>{publicKey}</code>
    <ConfirmButton
      button={<IconButton small icon="trash" label={`Remove ${publicKey}`} />}
      title="Remove the signing key?"
      action="Remove key"
      danger
      onConfirm={() => change((keys) => keys.filter((key) => key !== publicKey))}
    >
      Files that only {publicKey} signs are rejected. Without any key, releases need no signature. Published releases stay.
    </ConfirmButton>
  </div>
);

function AddKey({ change }: ChangeProps) {
  const [isMalformed, setMalformed] = useState(false);
  const add = useMutation({ mutationFn: (key: string) => change((keys) => [...keys, key]) });
  const submit = (values: FormData) => {
    // A pasted file has a comment before the key.
    const key = String(values.get('signingKeys')).trim().slice(-56);
    setMalformed(!SIGNING_KEY.test(key));
    if (SIGNING_KEY.test(key)) add.mutate(key);
  };
  return (
    <Form
      key={add.submittedAt}
      onSubmit={submit}
      error={add.error}
      messages={isMalformed ? { signingKeys: `${SIGNING_KEY_RULE.replace('must', 'It must')}.` } : undefined}
      action="Add key"
      pending={add.isPending}
      button={{ variant: 'secondary', icon: 'plus' }}
    >
      <TextField name="signingKeys" label="Public key" hint="The second line of the .pub file that minisign -G writes." />
    </Form>
  );
}
