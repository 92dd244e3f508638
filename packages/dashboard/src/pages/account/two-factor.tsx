import { lazy, Suspense, useState } from 'react';
import { latchkey } from '../../api/client.ts';
import { Button } from '../../components/button.tsx';
import { ConfirmDialog } from '../../components/confirm-dialog.tsx';
import { CopyButton } from '../../components/copy-button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { Notice } from '../../components/notice.tsx';
import { Badge } from '../../components/page.tsx';
import { Row } from '../../components/row.tsx';
import { Skeleton } from '../../components/states.tsx';
import { downloadText } from '../../download/download.ts';
import { ProofFields, readProof } from '../../session/owner-proof.tsx';
import { useAccount } from '../../session/session.ts';
import styles from './account.module.css';

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
      {/* One button, which so keeps the focus. */}
      <Button onClick={() => setOpen(twoFactorEnabled ? 'disable' : 'set-up')}>
        {twoFactorEnabled ? 'Turn off two-factor' : 'Set up two-factor'}
      </Button>
      <ConfirmDialog
        open={open === 'disable'}
        onClose={close}
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
      </ConfirmDialog>
      <SetUpDialog open={open === 'set-up'} onClose={close} />
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
      open={open || codes !== undefined}
      stays
      // The codes are shown this once: only their button closes them.
      onClose={codes ? () => undefined : close}
      title={codes ? 'Store your recovery codes' : 'Set up two-factor authentication'}
    >
      {codes ? (
        <RecoveryCodes codes={codes} onDone={close} />
      ) : (
        // While the dialog closes, it would begin another one.
        open && (
          <Suspense fallback={<Skeleton lines={5} />}>
            <TwoFactorSetUp onEnabled={setCodes} onCancel={close} />
          </Suspense>
        )
      )}
    </Dialog>
  );
}

function RecoveryCodes({ codes, onDone }: { readonly codes: readonly string[]; readonly onDone: () => void }) {
  const { username } = useAccount();
  const text = `Recovery codes of ${username} at ${location.host}. Each works once.\n\n${codes.join('\n')}\n`;
  return (
    <div className="stack">
      <Notice kind="warning" title="They are shown this once">
        Each opens your account once if you lose your phone. Store them where you store passwords.
      </Notice>
      <ol className={`${styles.codes} well`}>
        {codes.map((code) => (
          <li key={code}>{code}</li>
        ))}
      </ol>
      <div className="cluster">
        <Button small icon="download" onClick={() => downloadText('latchkey-recovery-codes.txt', 'text/plain', [text])}>
          Download codes
        </Button>
        <CopyButton value={codes.join('\n')} label="Copy codes" text="Copy codes" />
      </div>
      <div className="cluster end">
        <Button variant="primary" onClick={onDone}>
          I have stored the codes
        </Button>
      </div>
    </div>
  );
}
