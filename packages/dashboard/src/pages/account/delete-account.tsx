import { useState } from 'react';
import { latchkey } from '../../api/client.ts';
import { Button } from '../../components/button.tsx';
import { Section } from '../../components/page.tsx';
import { TextField } from '../../components/text-field.tsx';
import { useAccount, useLimits } from '../../session/session.ts';
import { useLeaveEverywhere } from '../../session/sign-out.ts';
import styles from './account.module.css';
import { readProof } from './owner-proof.tsx';
import { ProofDialog } from './proof-dialog.tsx';

export function DeleteAccount() {
  const { username } = useAccount();
  const [isOpen, setOpen] = useState(false);
  const [typed, setTyped] = useState('');
  const consequence = useConsequence();
  const leave = useLeaveEverywhere();
  const close = () => {
    setOpen(false);
    setTyped('');
  };
  const remove = async (values: FormData) => {
    await latchkey.account.delete(readProof(values));
    leave();
  };
  return (
    <Section title="Danger zone" dangerous>
      <div className={styles.rows}>
        <div className={styles.row}>
          <div className={styles.text}>
            <p className={styles.name}>Delete this account</p>
            <p className={styles.hint}>With everything that it owns. This cannot be undone.</p>
          </div>
          <Button variant="dangerOutline" icon="trash" onClick={() => setOpen(true)}>
            Delete account
          </Button>
        </div>
      </div>
      <ProofDialog
        open={isOpen}
        onClose={close}
        title={`Delete the account ${username}?`}
        description={consequence}
        action="Delete account"
        danger
        isReady={typed.trim() === username}
        onConfirm={remove}
        before={
          <TextField
            name="confirmation"
            label={`Type “${username}” to confirm`}
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
          />
        }
      />
    </Section>
  );
}

function useConsequence(): string {
  const limits = useLimits();
  const count = (value: number, noun: string) => `${value} ${noun}${value === 1 ? '' : 's'}`;
  const owned = limits
    ? [
        count(limits.createdApplicationsCount.currentValue, 'application'),
        count(limits.uploadedFilesCount.currentValue, 'file'),
        count(limits.apiKeyCount.currentValue, 'API key'),
      ].join(', ')
    : 'All applications, files, API keys';
  return `${owned} and all sessions are deleted. Connected clients are notified and disconnected. This cannot be undone.`;
}
