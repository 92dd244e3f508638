import { useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { latchkey } from '../../api/client.ts';
import { Button } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Badge } from '../../components/page.tsx';
import { Row } from '../../components/row.tsx';
import { Skeleton } from '../../components/skeleton.tsx';
import { sessionQuery, useAccount } from '../../session/session.ts';
import { toast } from '../../toast/toasts.ts';
import { readProof } from './owner-proof.tsx';
import { ProofDialog } from './proof-dialog.tsx';
import { sessionsQuery } from './queries.ts';
import { RecoveryCodes } from './recovery-codes.tsx';

/** Loaded on demand, with the library that draws QR codes. */
const TwoFactorSetUp = lazy(() => import('./two-factor-set-up.tsx').then(({ TwoFactorSetUp }) => ({ default: TwoFactorSetUp })));

export function TwoFactorRow() {
  const { twoFactorEnabled } = useAccount();
  const [open, setOpen] = useState<'set-up' | 'disable'>();
  const close = () => setOpen(undefined);
  return (
    <Row
      name={<>Two-factor authentication {twoFactorEnabled ? <Badge kind="success">On</Badge> : <Badge>Off</Badge>}</>}
      hint="A code of an app on your phone, in addition to the password."
    >
      {twoFactorEnabled ? (
        <Button onClick={() => setOpen('disable')}>Turn off two-factor</Button>
      ) : (
        <Button onClick={() => setOpen('set-up')}>Set up two-factor</Button>
      )}
      <SetUpDialog open={open === 'set-up'} onClose={close} />
      <DisableDialog open={open === 'disable'} onClose={close} />
    </Row>
  );
}

interface DialogProps {
  readonly open: boolean;
  readonly onClose: () => void;
}

function SetUpDialog({ open, onClose }: DialogProps) {
  const [codes, setCodes] = useState<readonly string[]>();
  const queryClient = useQueryClient();
  const close = () => {
    setCodes(undefined);
    onClose();
  };
  const enable = async (found: readonly string[]) => {
    setCodes(found);
    await queryClient.invalidateQueries({ queryKey: sessionQuery.queryKey });
    await queryClient.invalidateQueries({ queryKey: sessionsQuery.queryKey });
  };
  return (
    <Dialog
      open={open || codes !== undefined}
      stays
      // The codes are shown this once: only their button closes them.
      onClose={codes ? () => undefined : close}
      title={codes ? 'Store your recovery codes' : 'Set up two-factor authentication'}
    >
      {codes ? (
        <RecoveryCodes codes={codes} onDone={close} />
      ) : (
        <Suspense fallback={<Skeleton lines={5} />}>
          <TwoFactorSetUp onEnabled={enable} onCancel={close} />
        </Suspense>
      )}
    </Dialog>
  );
}

function DisableDialog({ open, onClose }: DialogProps) {
  const queryClient = useQueryClient();
  const disable = async (values: FormData) => {
    const { code = '', password } = readProof(values);
    await latchkey.twoFactor.disable({ code, ...(password !== undefined && { password }) });
    await queryClient.invalidateQueries({ queryKey: sessionQuery.queryKey });
    await queryClient.invalidateQueries({ queryKey: sessionsQuery.queryKey });
    toast.success('Two-factor authentication is off', 'All other sessions have ended.');
  };
  return (
    <ProofDialog
      open={open}
      onClose={onClose}
      title="Turn off two-factor authentication?"
      description="The password alone opens your account then. The recovery codes stop working, and all other sessions end."
      action="Turn off"
      danger
      onConfirm={disable}
    />
  );
}
