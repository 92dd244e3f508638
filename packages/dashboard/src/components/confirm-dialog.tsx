import { type ComponentProps, cloneElement, type ReactElement, type ReactNode, useState } from 'react';
import { toast } from '../toast/toasts.ts';
import { Button } from './button.tsx';
import { Dialog } from './dialog.tsx';
import { Form, TextField } from './form.tsx';
import { Row, Section } from './page.tsx';

interface ConfirmDialogProps {
  readonly open: boolean;
  readonly onClose: () => void;
  /** The question, which names the thing: "Delete Difference Engine?" */
  readonly title: string;
  readonly children: ReactNode;
  /** The button: "Delete application". */
  readonly action: string;
  readonly danger?: boolean | undefined;
  /** Inputs of the question, besides the name. */
  readonly fields?: ReactNode;
  /** Name to type, for what cannot be undone. */
  readonly typeName?: string | undefined;
  /** The dialog closes when it resolves, and shows the error when it rejects. */
  readonly onConfirm: (values: FormData) => unknown;
  /** Title and description of a toast. */
  readonly done?: readonly [title: string, description?: string];
}

export function ConfirmDialog({ open, onClose, title, children, ...props }: ConfirmDialogProps) {
  return (
    <Dialog open={open} onClose={onClose} title={title} description={children} stays={props.fields !== undefined}>
      <ConfirmForm {...props} onClose={onClose} />
    </Dialog>
  );
}

interface ConfirmButtonProps extends Omit<ConfirmDialogProps, 'open' | 'onClose'> {
  readonly button: ReactElement<ComponentProps<'button'>>;
}

/** A button that asks before it acts. */
export function ConfirmButton({ button, ...dialog }: ConfirmButtonProps) {
  const [isAsking, setAsking] = useState(false);
  return (
    <>
      {cloneElement(button, { onClick: () => setAsking(true) })}
      <ConfirmDialog {...dialog} open={isAsking} onClose={() => setAsking(false)} />
    </>
  );
}

type ConfirmFormProps = Omit<ConfirmDialogProps, 'open' | 'title' | 'children'>;

function ConfirmForm({ action, danger, fields, typeName, onConfirm, done, onClose }: ConfirmFormProps) {
  const [typed, setTyped] = useState('');
  const finish = () => {
    if (done) toast.success(...done);
    onClose();
  };
  const isTyped = typeName === undefined || typed.trim() === typeName.trim();
  const button = { variant: danger ? 'danger' : 'primary', disabled: !isTyped } as const;
  return (
    <Form onSubmit={onConfirm} onDone={finish} action={action} button={button} onCancel={onClose}>
      {typeName !== undefined && (
        <TextField
          name="confirmation"
          label={`Type “${typeName}” to confirm`}
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
      )}
      {fields}
    </Form>
  );
}

interface DangerZoneProps
  extends Pick<ComponentProps<typeof ConfirmButton>, 'title' | 'fields' | 'onConfirm' | 'done' | 'children'> {
  /** "application". */
  readonly thing: string;
  readonly name: string;
  readonly hint: string;
}

/** The deletion of what the page shows, after its name was typed. */
export function DangerZone({ thing, name, hint, ...dialog }: DangerZoneProps) {
  const action = `Delete ${thing}`;
  const button = (
    <Button variant="dangerOutline" icon="trash">
      {action}
    </Button>
  );
  return (
    <Section title="Danger zone" dangerous>
      <Row name={`Delete this ${thing}`} hint={hint}>
        <ConfirmButton button={button} action={action} danger typeName={name} {...dialog} />
      </Row>
    </Section>
  );
}
