import { useMutation } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Button } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Form } from '../../components/form.tsx';
import { OwnerProofFields } from './owner-proof.tsx';

interface ProofFormProps {
  readonly action: string;
  readonly danger?: boolean;
  /** True if the inputs above those of the proof are filled in. */
  readonly isReady?: boolean;
  readonly onClose: () => void;
  /** The dialog closes when it resolves, and shows the error when it rejects. */
  readonly onConfirm: (values: FormData) => Promise<unknown>;
  /** Label of the password of the account. */
  readonly passwordLabel?: string;
  /** Inputs before and after those of the proof. */
  readonly before?: ReactNode;
  readonly after?: ReactNode;
}

interface ProofDialogProps extends ProofFormProps {
  readonly open: boolean;
  readonly title: string;
  readonly description?: ReactNode;
}

/** A dialog for what needs the password, and a code where two-factor authentication is on. */
export function ProofDialog({ open, title, description, ...form }: ProofDialogProps) {
  return (
    <Dialog open={open} onClose={form.onClose} title={title} description={description} stays>
      <ProofForm {...form} />
    </Dialog>
  );
}

function ProofForm({ action, danger, isReady = true, onClose, onConfirm, passwordLabel, before, after }: ProofFormProps) {
  const confirmation = useMutation({ mutationFn: onConfirm, onSuccess: onClose });
  return (
    <Form
      onSubmit={(values) => isReady && confirmation.mutate(values)}
      error={confirmation.error}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant={danger ? 'danger' : 'primary'} disabled={!isReady} pending={confirmation.isPending}>
            {action}
          </Button>
        </>
      }
    >
      {before}
      <OwnerProofFields {...(passwordLabel !== undefined && { label: passwordLabel })} />
      {after}
    </Form>
  );
}
