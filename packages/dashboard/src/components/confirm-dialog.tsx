import { useMutation } from '@tanstack/react-query';
import { type ComponentProps, cloneElement, type ReactElement, type ReactNode, useState } from 'react';
import { useAccount } from '../session/session.ts';
import { Dialog } from './dialog.tsx';
import { Form } from './form.tsx';
import { CodeField, TextField } from './text-field.tsx';

export interface ConfirmDialogProps {
  readonly open: boolean;
  readonly onClose: () => void;
  /** The question, which names the thing: "Delete Difference Engine?" */
  readonly title: string;
  readonly children: ReactNode;
  /** The button: "Delete application". */
  readonly action: string;
  readonly danger?: boolean | undefined;
  /** True if a click outside leaves it open, as inputs would be lost. */
  readonly stays?: boolean;
  /** Inputs of the question, besides the name and the code. */
  readonly fields?: ReactNode;
  /** Name to type, for what cannot be undone. */
  readonly typeName?: string | undefined;
  /** True if accounts with two-factor authentication have to enter a code. */
  readonly needsCode?: boolean | undefined;
  /** The dialog closes when it resolves, and shows the error when it rejects. */
  readonly onConfirm: (input: { readonly code: string; readonly values: FormData }) => Promise<unknown>;
}

export function ConfirmDialog({ open, onClose, title, children, stays, ...props }: ConfirmDialogProps) {
  return (
    <Dialog open={open} onClose={onClose} title={title} description={children} stays={stays}>
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

function ConfirmForm({
  action,
  danger,
  fields,
  typeName,
  needsCode,
  onConfirm,
  onClose,
}: Omit<ConfirmDialogProps, 'open' | 'title' | 'children'>) {
  const { twoFactorEnabled } = useAccount();
  const [typed, setTyped] = useState('');
  const confirmation = useMutation({ mutationFn: onConfirm, onSuccess: onClose });
  const isTyped = typeName === undefined || typed.trim() === typeName.trim();
  return (
    <Form
      onSubmit={(values) => isTyped && confirmation.mutate({ code: String(values.get('code') ?? '').trim(), values })}
      error={confirmation.error}
      action={action}
      pending={confirmation.isPending}
      button={{ variant: danger ? 'danger' : 'primary', disabled: !isTyped }}
      onCancel={onClose}
    >
      {typeName !== undefined && (
        <TextField
          name="confirmation"
          label={`Type “${typeName}” to confirm`}
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
      )}
      {fields}
      {needsCode && twoFactorEnabled && <CodeField hint="From your authenticator app, or a recovery code." />}
    </Form>
  );
}
