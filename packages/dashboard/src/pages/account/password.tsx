import { LatchkeyError } from '@latchkey/client';
import { PASSWORD } from '@latchkey/contract/lengths';
import { useQueryClient } from '@tanstack/react-query';
import { latchkey } from '../../api/client.ts';
import { Button } from '../../components/button.tsx';
import { Row } from '../../components/row.tsx';
import { TextField } from '../../components/text-field.tsx';
import { useAccount } from '../../session/session.ts';
import { toast } from '../../toast/toasts.ts';
import { readProof } from './owner-proof.tsx';
import { ProofButton } from './proof-dialog.tsx';
import { sessionsQuery } from './queries.ts';

export function PasswordRow() {
  const { email } = useAccount();
  const queryClient = useQueryClient();
  const change = async (values: FormData) => {
    const newPassword = String(values.get('newPassword'));
    if (newPassword.length < PASSWORD.min) throw invalid('newPassword', `it has fewer than ${PASSWORD.min} characters`);
    await latchkey.account.changePassword({ ...readProof(values), newPassword });
    await queryClient.invalidateQueries({ queryKey: sessionsQuery.queryKey });
    toast.success('Password changed', 'All other sessions have ended.');
  };
  return (
    <Row name="Password" hint="Changing it ends all other sessions.">
      <ProofButton
        button={<Button>Change password</Button>}
        title="Change password"
        description="All other sessions end. API keys stay."
        action="Change password"
        passwordLabel="Current password"
        onConfirm={change}
        // Password managers store the new password for this account.
        before={<input type="hidden" name="username" autoComplete="username" value={email} />}
        after={
          <TextField
            name="newPassword"
            label="New password"
            type="password"
            autoComplete="new-password"
            hint={`At least ${PASSWORD.min} characters. A sentence is easier to remember, and harder to guess.`}
          />
        }
      />
    </Row>
  );
}

/** The error that the service would respond with. */
function invalid(name: string, message: string) {
  return new LatchkeyError('Invalid input', {
    code: 'VALIDATION_ERROR',
    status: 400,
    details: [{ path: `body.${name}`, message }],
  });
}
