import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { latchkey } from '../../api/client.ts';
import { Button } from '../../components/button.tsx';
import { ConfirmButton } from '../../components/confirm-dialog.tsx';
import { FileButton } from '../../components/file-button.tsx';
import { TextField } from '../../components/form.tsx';
import { Section } from '../../components/page.tsx';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Row, Rows } from '../../components/row.tsx';
import { Avatar } from '../../session/avatar.tsx';
import { ProofFields, readProof } from '../../session/owner-proof.tsx';
import { useAccount } from '../../session/session.ts';
import { toast } from '../../toast/toasts.ts';
import styles from './account.module.css';
import { AvatarDialog } from './avatar-dialog.tsx';

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
          <ConfirmButton
            button={<Button>Change email</Button>}
            title="Change email"
            action="Send mail"
            onConfirm={changeEmail}
            fields={
              <>
                <TextField name="email" label="New email" type="email" autoComplete="email" />
                <ProofFields />
              </>
            }
          >
            A mail with a link goes to the new address. The email changes when you open the link.
          </ConfirmButton>
        </Row>
      </Rows>
    </Section>
  );
}

function AvatarActions() {
  const { avatarUrl } = useAccount();
  const [file, setFile] = useState<File>();
  const remove = useMutation({
    mutationFn: () => latchkey.avatar.remove(),
    onSuccess: () => toast.success('Avatar removed'),
    onError: (error) => toast.error('The avatar was not removed', error),
  });
  return (
    <div className="cluster">
      <FileButton
        button={<Button icon="upload">Upload avatar</Button>}
        label="Image for the avatar"
        accept="image/png,image/jpeg,image/webp"
        onFiles={([chosen]) => setFile(chosen)}
      />
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
  await latchkey.account.changeEmail({ ...readProof(values), email });
  toast.success('Check your mail', `Open the link that was sent to ${email}. Until then your email stays.`);
}
