import { PASSWORD } from '@latchkey/contract/lengths';
import { latchkey } from '../../api/client.ts';
import { Button } from '../../components/button.tsx';
import { ConfirmButton } from '../../components/confirm-dialog.tsx';
import { InputError, TextField } from '../../components/form.tsx';
import { Row } from '../../components/row.tsx';
import { ProofFields, readProof } from '../../session/owner-proof.tsx';
import { useAccount } from '../../session/session.ts';

export function PasswordRow() {
  const { email } = useAccount();
  const change = (values: FormData) => {
    const newPassword = String(values.get('newPassword'));
    if (newPassword.length < PASSWORD.min) throw new InputError({ newPassword: `It has fewer than ${PASSWORD.min} characters.` });
    return latchkey.account.changePassword({ ...readProof(values), newPassword });
  };
  const fields = (
    <>
      {/* Password managers store the new password for this account. */}
      <input type="hidden" name="username" autoComplete="username" value={email} />
      <ProofFields label="Current password" />
      <TextField
        name="newPassword"
        label="New password"
        type="password"
        autoComplete="new-password"
        hint={`At least ${PASSWORD.min} characters. A sentence is easier to remember, and harder to guess.`}
      />
    </>
  );
  return (
    <Row name="Password" hint="Changing it ends all other sessions.">
      <ConfirmButton
        button={<Button>Change password</Button>}
        title="Change password"
        action="Change password"
        fields={fields}
        done={['Password changed', 'All other sessions have ended.']}
        onConfirm={change}
      >
        All other sessions end. API keys stay.
      </ConfirmButton>
    </Row>
  );
}
