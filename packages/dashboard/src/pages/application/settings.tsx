import type { ApplicationSettings } from '@latchkey/client';
import { describeLength } from '@latchkey/contract/lengths';
import {
  APPLICATION_FLAGS,
  APPLICATION_TEXTS,
  FLAG_NAMES,
  TEXT_NAMES,
  type TextName,
} from '@latchkey/contract/setting-definitions';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { Button } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { MutationForm, TextField } from '../../components/form.tsx';
import { Notice } from '../../components/notice.tsx';
import { Row, Rows, Section } from '../../components/page.tsx';
import { isChangedMeanwhile } from '../../error/explain-error.ts';
import { toast } from '../../toast/toasts.ts';
import { changeSetting } from './change-setting.ts';
import { SwitchRow } from './switch-row.tsx';
import { useApplicationId } from './use-application-id.ts';

export function Settings({ settings }: { readonly settings: ApplicationSettings }) {
  const applicationId = useApplicationId();
  return (
    <Section title="Settings">
      <Rows>
        {TEXT_NAMES.map((field) => (
          <Text key={field} field={field} value={settings[field]} />
        ))}
        {FLAG_NAMES.map((field) => (
          <SwitchRow
            key={field}
            title={APPLICATION_FLAGS[field].title}
            hint={APPLICATION_FLAGS[field].hint}
            value={settings[field]}
            change={(value) => changeSetting({ applicationId, field, seen: settings[field], value })}
          />
        ))}
      </Rows>
    </Section>
  );
}

interface TextProps {
  readonly field: TextName;
  readonly value: string;
}

function Text(props: TextProps) {
  const [isEditing, setEditing] = useState(false);
  const { title, hint } = APPLICATION_TEXTS[props.field];
  const edit = `Edit ${title.toLowerCase()}`;
  return (
    <Row name={title} hint={hint}>
      <div className="cluster">
        <code dir="auto">{props.value}</code>
        <Button small icon="edit" aria-label={edit} onClick={() => setEditing(true)}>
          Edit
        </Button>
      </div>
      <Dialog open={isEditing} onClose={() => setEditing(false)} title={edit}>
        <TextForm {...props} onClose={() => setEditing(false)} />
      </Dialog>
    </Row>
  );
}

function TextForm({ field, value, onClose }: TextProps & { readonly onClose: () => void }) {
  const applicationId = useApplicationId();
  const { title, length, example, isLive } = APPLICATION_TEXTS[field];
  const noun = title.toLowerCase();
  const [seen, setSeen] = useState(value);
  const change = useMutation({
    mutationFn: (values: FormData): Promise<void> => {
      // The notice shows the newer one: who saves then wants to replace that.
      const replaced = isConflict ? value : seen;
      setSeen(replaced);
      const wanted = String(values.get('value')).trim();
      return changeSetting({ applicationId, field, seen: replaced, value: wanted });
    },
    onSuccess: () => {
      toast.success(`${title} changed`);
      onClose();
    },
  });
  const isConflict = isChangedMeanwhile(change.error) && value !== seen;
  return (
    <MutationForm
      submission={change}
      hidesError={isConflict}
      action={isConflict ? `Replace ${value}` : `Save ${noun}`}
      onCancel={onClose}
      cancel={isConflict ? `Keep ${value}` : 'Cancel'}
    >
      <TextField
        name="value"
        label={title}
        hint={`${describeLength(length)}, such as ${example}.${isLive ? ' Connected clients are notified.' : ''}`}
        defaultValue={value}
        required
      />
      {isConflict && (
        <Notice kind="warning" title={`The ${noun} was changed meanwhile`}>
          It was {seen} when you began, and is {value} now. Keep that one, or replace it with yours.
        </Notice>
      )}
    </MutationForm>
  );
}
