import { SIGNING_KEY, SIGNING_KEY_RULE } from '@latchkey/contract/release';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { latchkey } from '../../../api/client.ts';
import { releaseSettingsQuery } from '../../../api/queries.ts';
import { IconButton } from '../../../components/button.tsx';
import { ConfirmButton } from '../../../components/confirm-dialog.tsx';
import { Form, InputError, TextField } from '../../../components/form.tsx';
import { Section } from '../../../components/page.tsx';
import { QueryView } from '../../../components/states.tsx';
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
    return latchkey.releases.updateSettings(applicationId, { signingKeys: edit(signingKeys) });
  };
  return (
    <Section
      title="Signing keys"
      description="Once a key is pinned, a release is published only if a pinned key signed each of its files."
    >
      <QueryView query={useQuery(settings)}>
        {({ signingKeys }) => signingKeys.map((key) => <SigningKey key={key} publicKey={key} change={change} />)}
      </QueryView>
      <AddKey change={change} />
    </Section>
  );
}

interface ChangeProps {
  readonly change: (edit: (keys: readonly string[]) => string[]) => Promise<unknown>;
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
  // A new form, and so an empty input, for each key.
  const [added, setAdded] = useState(0);
  const add = useMutation({
    mutationFn: async (values: FormData) => {
      // A pasted file has a comment before the key.
      const key = String(values.get('signingKeys')).trim().slice(-56);
      if (!SIGNING_KEY.test(key)) throw new InputError({ signingKeys: `${SIGNING_KEY_RULE.replace('must', 'It must')}.` });
      await change((keys) => [...keys, key]);
    },
    onSuccess: () => setAdded(added + 1),
  });
  return (
    <Form key={added} submission={add} action="Add key" button={{ variant: 'secondary', icon: 'plus' }}>
      <TextField name="signingKeys" label="Public key" hint="The second line of the .pub file that minisign -G writes." />
    </Form>
  );
}
