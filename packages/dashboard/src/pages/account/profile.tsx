import { useState } from 'react';
import { latchkey } from '../../api/client.ts';
import { Button } from '../../components/button.tsx';
import { ConfirmButton } from '../../components/confirm-dialog.tsx';
import { FileButton } from '../../components/file-button.tsx';
import { TextField } from '../../components/form.tsx';
import { Row, Rows, Section } from '../../components/page.tsx';
import { RelativeTime } from '../../components/relative-time.tsx';
import { Avatar } from '../../session/avatar.tsx';
import { ProofFields, readProof } from '../../session/owner-proof.tsx';
import { useAccount } from '../../session/session.ts';
import { toast } from '../../toast/toasts.ts';
import { useAction } from '../../toast/use-action.ts';
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
  const [image, setImage] = useState<ImageBitmap | null>();
  const remove = useAction(() => latchkey.avatar.remove(), 'The avatar was not removed', ['Avatar removed']);
  return (
    <div className="cluster">
      <FileButton
        button={<Button icon="upload">Upload avatar</Button>}
        label="Image for the avatar"
        accept="image/png,image/jpeg,image/webp"
        onFiles={([file]) => file && createImageBitmap(file).then(setImage, () => setImage(null))}
      />
      {avatarUrl?.startsWith('/') && (
        <Button pending={remove.isPending} onClick={() => remove.mutate()}>
          Remove avatar
        </Button>
      )}
      <AvatarDialog image={image} onClose={() => setImage(undefined)} />
    </div>
  );
}

async function changeEmail(values: FormData): Promise<void> {
  const email = String(values.get('email')).trim();
  await latchkey.account.changeEmail({ ...readProof(values), email });
  toast.success('Check your mail', `Open the link that was sent to ${email}. Until then your email stays.`);
}
