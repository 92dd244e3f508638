import { LatchkeyError } from '@latchkey/client';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { latchkey } from '../../api/client.ts';
import { Button } from '../../components/button.tsx';
import { Section } from '../../components/page.tsx';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Row, Rows } from '../../components/row.tsx';
import { TextField } from '../../components/text-field.tsx';
import { Avatar } from '../../session/avatar.tsx';
import { sessionQuery, useAccount } from '../../session/session.ts';
import { toast } from '../../toast/toasts.ts';
import styles from './account.module.css';
import { AvatarDialog } from './avatar-dialog.tsx';
import { readProof } from './owner-proof.tsx';
import { ProofButton } from './proof-dialog.tsx';

export function Profile() {
  const { username, createdAt, email } = useAccount();
  return (
    <Section title="Profile">
      <Rows>
        <Row
          image={<Avatar className={styles.avatar} alt="Your avatar" />}
          name={username}
          hint={
            <>
              Signed up <RelativeTime at={createdAt} />
            </>
          }
        >
          <AvatarActions />
        </Row>
        <Row name="Email" hint={email}>
          <ProofButton
            button={<Button>Change email</Button>}
            title="Change email"
            description="A mail with a link goes to the new address. The email changes when you open the link."
            action="Send mail"
            onConfirm={changeEmail}
            before={<TextField name="email" label="New email" type="email" autoComplete="email" />}
          />
        </Row>
      </Rows>
    </Section>
  );
}

function AvatarActions() {
  const { avatarUrl } = useAccount();
  const [file, setFile] = useState<File>();
  const input = useRef<HTMLInputElement>(null);
  const queryClient = useQueryClient();
  const remove = useMutation({
    mutationFn: () => latchkey.avatar.remove(),
    onSuccess: async () => {
      await queryClient.invalidateQueries({ queryKey: sessionQuery.queryKey });
      toast.success('Avatar removed');
    },
    onError: (error) => toast.error('The avatar was not removed', error),
  });
  return (
    <div className={styles.actions}>
      <input
        ref={input}
        type="file"
        accept="image/png,image/jpeg,image/webp"
        hidden
        aria-label="Image for the avatar"
        onChange={({ currentTarget }) => {
          setFile(currentTarget.files?.[0]);
          currentTarget.value = '';
        }}
      />
      <Button icon="upload" onClick={() => input.current?.click()}>
        Upload avatar
      </Button>
      {avatarUrl?.startsWith('/') && (
        <Button pending={remove.isPending} onClick={() => remove.mutate()}>
          Remove avatar
        </Button>
      )}
      <AvatarDialog file={file} onClose={() => setFile(undefined)} />
    </div>
  );
}

async function changeEmail(values: FormData): Promise<void> {
  const email = String(values.get('email')).trim();
  await latchkey.account.changeEmail({ ...readProof(values), email }).catch(explainMissingMail);
  toast.success('Check your mail', `Open the link that was sent to ${email}. Until then your email stays.`);
}

/** Not a passing failure, as other errors with the status 503 are. */
function explainMissingMail(error: unknown): never {
  if (!(error instanceof LatchkeyError) || error.code !== 'mail_not_configured') throw error;
  throw new LatchkeyError('This Latchkey sends no mail. Ask its operator to change your email.', {
    code: error.code,
    requestId: error.requestId,
  });
}
