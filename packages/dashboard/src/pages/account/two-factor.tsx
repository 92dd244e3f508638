import { queryOptions } from '@tanstack/react-query';
import { toString as toQrCode } from 'qrcode';
import { useState } from 'react';
import { latchkey } from '../../api/client.ts';
import { Button } from '../../components/button.tsx';
import { ConfirmDialog } from '../../components/confirm-dialog.tsx';
import { CopyButton } from '../../components/copy-button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { CodeField, Form } from '../../components/form.tsx';
import { Notice } from '../../components/notice.tsx';
import { Badge, Row } from '../../components/page.tsx';
import { QueryView } from '../../components/states.tsx';
import { downloadText } from '../../download/download.ts';
import { ProofFields, readProof } from '../../session/owner-proof.tsx';
import { useAccount } from '../../session/session.ts';
import styles from './account.module.css';

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
        open && <SetUpForm onEnabled={setCodes} onCancel={close} />
      )}
    </Dialog>
  );
}

interface SetUpFormProps {
  readonly onEnabled: (recoveryCodes: readonly string[]) => unknown;
  readonly onCancel: () => void;
}

function SetUpForm({ onEnabled, onCancel }: SetUpFormProps) {
  // Each request makes another secret. It does not stay in the cache.
  const query = queryOptions({
    queryKey: ['two-factor-set-up'],
    queryFn: async ({ signal }) => {
      const { secret, otpauthUrl } = await latchkey.twoFactor.setUp({ signal });
      return { secret, qrCode: await toQrCode(otpauthUrl, { type: 'svg' }) };
    },
    staleTime: 'static',
    gcTime: 0,
  });
  const enable = (values: FormData) => latchkey.twoFactor.enable(String(values.get('code')).trim());
  return (
    <QueryView query={query} action={<Button onClick={onCancel}>Cancel</Button>}>
      {({ secret, qrCode }) => (
        <Form onSubmit={enable} onDone={onEnabled} action="Turn on" onCancel={onCancel}>
          <ol className={`${styles.steps} stack`}>
            <li>
              <p>Scan this with an authenticator app, or enter the key by hand.</p>
              <img
                className={styles.qr}
                src={`data:image/svg+xml,${encodeURIComponent(qrCode)}`}
                alt="QR code for the authenticator app"
              />
              <p className="cluster">
                <code>{secret.replace(/(.{4})(?=.)/g, '$1 ')}</code> <CopyButton value={secret} label="Copy key" />
              </p>
            </li>
            <li>
              <CodeField label="Code of the app" hint="Six digits. All other sessions end when it is right." />
            </li>
          </ol>
        </Form>
      )}
    </QueryView>
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
