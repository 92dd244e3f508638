import type { ApplicationSettings } from '@latchkey/client';
import { APPLICATION_FLAGS, FLAG_NAMES, type FlagName } from '@latchkey/contract/application-settings';
import { describeLength, VERSION } from '@latchkey/contract/lengths';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Button } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Form } from '../../components/form.tsx';
import { Notice } from '../../components/notice.tsx';
import { Section } from '../../components/page.tsx';
import { TextField } from '../../components/text-field.tsx';
import { isChangedMeanwhile } from '../../error/explain-error.ts';
import { toast } from '../../toast/toasts.ts';
import { changeSetting, type SettingChange } from './change-setting.ts';
import styles from './overview.module.css';
import { SwitchRow } from './switch-row.tsx';

interface SettingsProps {
  readonly applicationId: string;
  readonly settings: ApplicationSettings;
}

export function Settings({ applicationId, settings }: SettingsProps) {
  return (
    <Section title="Settings">
      <div className={styles.rows}>
        <Version applicationId={applicationId} version={settings.version} />
        {FLAG_NAMES.map((field) => (
          <Flag key={field} applicationId={applicationId} field={field} value={settings[field]} />
        ))}
      </div>
    </Section>
  );
}

/** Changes settings. The page shows the new ones before the service has confirmed them. */
function useChange(applicationId: string) {
  const queryClient = useQueryClient();
  return useMutation({
    mutationFn: (change: Omit<SettingChange, 'applicationId'>) => changeSetting(queryClient, { applicationId, ...change }),
  });
}

interface FlagProps {
  readonly applicationId: string;
  readonly field: FlagName;
  readonly value: boolean;
}

function Flag({ applicationId, field, value }: FlagProps) {
  const { title, hint } = APPLICATION_FLAGS[field];
  const change = useChange(applicationId);
  const wanted = change.isPending ? change.variables.value === true : value;
  const set = (checked: boolean) =>
    change.mutate(
      { field, seen: value, value: checked },
      { onError: (error) => toast.error(`“${title}” was not changed`, error) },
    );
  return <SwitchRow title={title} hint={hint} checked={wanted} onChange={set} />;
}

function Version({ applicationId, version }: { readonly applicationId: string; readonly version: string }) {
  const [isEditing, setEditing] = useState(false);
  return (
    <div className={styles.row}>
      <div className={styles.text}>
        <p className={styles.name}>Version</p>
        <p className={styles.hint}>Connected clients hear of a new version immediately.</p>
      </div>
      <div className={styles.version}>
        <code dir="auto">{version}</code>
        <Button small icon="edit" aria-label="Edit version" onClick={() => setEditing(true)}>
          Edit
        </Button>
      </div>
      <Dialog open={isEditing} onClose={() => setEditing(false)} title="Edit version">
        <VersionForm applicationId={applicationId} version={version} onClose={() => setEditing(false)} />
      </Dialog>
    </div>
  );
}

interface VersionFormProps {
  readonly applicationId: string;
  readonly version: string;
  readonly onClose: () => void;
}

function VersionForm({ applicationId, version, onClose }: VersionFormProps) {
  const change = useChange(applicationId);
  const [seen, setSeen] = useState(version);
  const isConflict = isChangedMeanwhile(change.error) && version !== seen;
  const submit = (values: FormData) => {
    // The notice shows the newer one: who saves then wants to replace that.
    const replaced = isConflict ? version : seen;
    setSeen(replaced);
    change.mutate(
      { field: 'version', seen: replaced, value: String(values.get('value')).trim() },
      {
        onSuccess: () => {
          toast.success('Version changed');
          onClose();
        },
      },
    );
  };
  return (
    <Form
      onSubmit={submit}
      error={isConflict ? null : change.error}
      actions={
        <>
          <Button onClick={onClose}>{isConflict ? `Keep ${version}` : 'Cancel'}</Button>
          <Button type="submit" variant="primary" pending={change.isPending}>
            {isConflict ? `Replace ${version}` : 'Save version'}
          </Button>
        </>
      }
    >
      <TextField
        name="value"
        label="Version"
        hint={`${describeLength(VERSION)}, such as 1.4.2. Connected clients are notified.`}
        defaultValue={version}
        required
      />
      {isConflict && (
        <Notice kind="warning" title="The version was changed meanwhile">
          It was {seen} when you began, and is {version} now. Keep that one, or replace it with yours.
        </Notice>
      )}
    </Form>
  );
}
