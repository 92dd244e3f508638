import { Button } from '../../components/button.tsx';
import { CopyButton } from '../../components/copy-button.tsx';
import { Notice } from '../../components/notice.tsx';
import { downloadText } from '../../download/download.ts';
import { useAccount } from '../../session/session.ts';
import styles from './account.module.css';

export function RecoveryCodes({ codes, onDone }: { readonly codes: readonly string[]; readonly onDone: () => void }) {
  const { username } = useAccount();
  const text = `Recovery codes of ${username} at ${location.host}. Each works once.\n\n${codes.join('\n')}\n`;
  return (
    <div className="stack">
      <Notice kind="warning" title="They are shown this once">
        Each opens your account once if you lose your phone. Store them where you store passwords.
      </Notice>
      <ol className={styles.codes}>
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
