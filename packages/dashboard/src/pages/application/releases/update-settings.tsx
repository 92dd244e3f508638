import { SIGNING_KEY, SIGNING_KEY_RULE, STABLE_CHANNEL } from '@latchkey/contract/release';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { latchkey } from '../../../api/client.ts';
import { releaseSettingsQuery } from '../../../api/queries.ts';
import { serverUrl } from '../../../api/settings.ts';
import { IconButton } from '../../../components/button.tsx';
import { ConfirmButton } from '../../../components/confirm-dialog.tsx';
import { CopyFigure } from '../../../components/copy-button.tsx';
import { Form, InputError, SelectField, TextField } from '../../../components/form.tsx';
import { Section } from '../../../components/page.tsx';
import { QueryView } from '../../../components/states.tsx';
import { SwitchRow } from '../switch-row.tsx';
import { useApplicationId } from '../use-application-id.ts';
import styles from './releases.module.css';

/** Updaters, each with the path of its feed below that of the channel. */
const UPDATERS = [
  ['Tauri', '/tauri/{{target}}/{{arch}}/{{current_version}}'],
  ['electron-updater', ''],
  ['Sparkle', '/appcast.xml'],
  ['Other updaters', '/latest.json'],
] as const;

/**
 * URLs of feeds, and the keys that files are signed with.
 * @param channels of the releases, with repetitions
 */
export function UpdateSettings({ channels }: { readonly channels: readonly string[] }) {
  const applicationId = useApplicationId();
  const [channel, setChannel] = useState<string>(STABLE_CHANNEL);
  return (
    <QueryView query={releaseSettingsQuery(applicationId)}>
      {({ publicUpdates, signingKeys }) => (
        <>
          <Section title="Feeds" description="Updaters read these URLs. electron-updater needs the provider “generic”.">
            <SwitchRow
              title="Public updates"
              hint="Feeds need no key. Otherwise requests have the header Authorization: Bearer <HTTP key>."
              value={publicUpdates}
              change={(wanted) => latchkey.releases.updateSettings(applicationId, { publicUpdates: wanted })}
            />
            <SelectField
              name="channel"
              label="Channel"
              value={channel}
              onChange={(event) => setChannel(event.currentTarget.value)}
              options={[...new Set([STABLE_CHANNEL, ...channels])].map((name) => [name, name])}
            />
            {UPDATERS.map(([name, path]) => (
              <CopyFigure key={name} name={name} text={`${serverUrl}/api/v1/updates/${applicationId}/${channel}${path}`} />
            ))}
          </Section>
          <SigningKeys signingKeys={signingKeys} />
        </>
      )}
    </QueryView>
  );
}

/** Public keys of minisign, by one of which each file of a release is signed. */
function SigningKeys({ signingKeys }: { readonly signingKeys: readonly string[] }) {
  const applicationId = useApplicationId();
  const queryClient = useQueryClient();
  const [added, setAdded] = useState(0);
  const change = async (edit: (keys: readonly string[]) => string[]) => {
    // The list is replaced as a whole: others may have added a key.
    const saved = await queryClient.fetchQuery({ ...releaseSettingsQuery(applicationId), staleTime: 0 });
    return latchkey.releases.updateSettings(applicationId, { signingKeys: edit(saved.signingKeys) });
  };
  const add = (values: FormData) => {
    // A pasted file has a comment before the key.
    const key = String(values.get('signingKeys')).trim().slice(-56);
    if (!SIGNING_KEY.test(key)) throw new InputError({ signingKeys: `${SIGNING_KEY_RULE.replace('must', 'It must')}.` });
    return change((keys) => [...keys, key]);
  };
  return (
    <Section
      title="Signing keys"
      description="Once a key is pinned, a release is published only if a pinned key signed each of its files."
    >
      {signingKeys.map((key) => (
        <div key={key} className="between">
          <code className={styles.text}>{key}</code>
          <ConfirmButton
            button={<IconButton small icon="trash" label={`Remove ${key}`} />}
            title="Remove the signing key?"
            action="Remove key"
            danger
            onConfirm={() => change((keys) => keys.filter((one) => one !== key))}
          >
            Files that only {key} signs are rejected. Without any key, releases need no signature. Published releases stay.
          </ConfirmButton>
        </div>
      ))}
      {/* A new form, and so an empty input, after each key. */}
      <Form
        key={added}
        onSubmit={add}
        onDone={() => setAdded(added + 1)}
        action="Add key"
        button={{ variant: 'secondary', icon: 'plus' }}
      >
        <TextField name="signingKeys" label="Public key" hint="The second line of the .pub file that minisign -G writes." />
      </Form>
    </Section>
  );
}
