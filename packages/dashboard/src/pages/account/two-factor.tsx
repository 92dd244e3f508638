import { lazy, Suspense, useState } from 'react';
import { latchkey } from '../../api/client.ts';
import { Button } from '../../components/button.tsx';
import { ConfirmButton } from '../../components/confirm-dialog.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Badge } from '../../components/page.tsx';
import { Row } from '../../components/row.tsx';
import { Skeleton } from '../../components/skeleton.tsx';
import { ProofFields, readProof } from '../../session/owner-proof.tsx';
import { useAccount } from '../../session/session.ts';
import { RecoveryCodes } from './recovery-codes.tsx';

/** Loaded on demand, with the library that draws QR codes. */
const TwoFactorSetUp = lazy(() => import('./two-factor-set-up.tsx').then(({ TwoFactorSetUp }) => ({ default: TwoFactorSetUp })));

export function TwoFactorRow() {
  const { twoFactorEnabled } = useAccount();
  const [isOpen, setOpen] = useState(false);
  return (
    <Row
      name={<>Two-factor authentication {twoFactorEnabled ? <Badge kind="success">On</Badge> : <Badge>Off</Badge>}</>}
      hint="A code of an app on your phone, in addition to the password."
    >
      {twoFactorEnabled ? (
        <ConfirmButton
          button={<Button>Turn off two-factor</Button>}
          title="Turn off two-factor authentication?"
          action="Turn off"
          danger
          fields={<ProofFields />}
          done={['Two-factor authentication is off', 'All other sessions have ended.']}
          onConfirm={(values) => {
            const { password, code = '' } = readProof(values);
            return latchkey.twoFactor.disable({ password, code });
          }}
        >
          The password alone opens your account then. The recovery codes stop working, and all other sessions end.
        </ConfirmButton>
      ) : (
        <Button onClick={() => setOpen(true)}>Set up two-factor</Button>
      )}
      <SetUpDialog open={isOpen} onClose={() => setOpen(false)} />
    </Row>
  );
}

function SetUpDialog({ open, onClose }: { readonly open: boolean; readonly onClose: () => void }) {
  const [codes, setCodes] = useState<readonly string[]>();
  const close = () => {
    setCodes(undefined);
    onClose();
  };
  return (
    <Dialog
      open={open}
      stays
      // The codes are shown this once: only their button closes them.
      onClose={codes ? () => undefined : close}
      title={codes ? 'Store your recovery codes' : 'Set up two-factor authentication'}
    >
      {codes ? (
        <RecoveryCodes codes={codes} onDone={close} />
      ) : (
        <Suspense fallback={<Skeleton lines={5} />}>
          <TwoFactorSetUp onEnabled={setCodes} onCancel={close} />
        </Suspense>
      )}
    </Dialog>
  );
}
