import { type ComponentProps, cloneElement, type ReactElement, type ReactNode, useState } from 'react';
import { ConfirmDialog, type ConfirmDialogProps } from '../../components/confirm-dialog.tsx';
import { OwnerProofFields } from './owner-proof.tsx';

interface ProofDialogProps extends Omit<ConfirmDialogProps, 'children' | 'fields' | 'onConfirm'> {
  readonly description: ReactNode;
  /** The dialog closes when it resolves, and shows the error when it rejects. */
  readonly onConfirm: (values: FormData) => Promise<unknown>;
  /** Label of the password of the account. */
  readonly passwordLabel?: string;
  /** Inputs before and after those of the proof. */
  readonly before?: ReactNode;
  readonly after?: ReactNode;
}

/** A dialog for what needs the password, and a code where two-factor authentication is on. */
export function ProofDialog({ description, onConfirm, passwordLabel, before, after, ...dialog }: ProofDialogProps) {
  const fields = (
    <>
      {before}
      <OwnerProofFields {...(passwordLabel !== undefined && { label: passwordLabel })} />
      {after}
    </>
  );
  return (
    <ConfirmDialog {...dialog} stays fields={fields} onConfirm={({ values }) => onConfirm(values)}>
      {description}
    </ConfirmDialog>
  );
}

interface ProofButtonProps extends Omit<ProofDialogProps, 'open' | 'onClose'> {
  readonly button: ReactElement<ComponentProps<'button'>>;
}

/** A button that asks for a proof before it acts. */
export function ProofButton({ button, ...dialog }: ProofButtonProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      {cloneElement(button, { onClick: () => setOpen(true) })}
      <ProofDialog {...dialog} open={isOpen} onClose={() => setOpen(false)} />
    </>
  );
}
