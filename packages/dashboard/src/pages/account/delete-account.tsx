import { latchkey } from '../../api/client.ts';
import { DangerZone } from '../../components/danger-zone.tsx';
import { ProofFields, readProof } from '../../session/owner-proof.tsx';
import { useAccount, useLimits } from '../../session/session.ts';
import { leaveEverywhere } from '../../session/sign-out.ts';

export function DeleteAccount() {
  const { username } = useAccount();
  const owned = useOwned();
  return (
    <DangerZone
      thing="account"
      name={username}
      title={`Delete the account ${username}?`}
      hint="With everything that it owns. This cannot be undone."
      fields={<ProofFields />}
      onConfirm={async (values) => {
        await latchkey.account.delete(readProof(values));
        leaveEverywhere();
      }}
    >
      {owned} and all sessions are deleted. Connected clients are notified and disconnected. This cannot be undone.
    </DangerZone>
  );
}

function useOwned(): string {
  const limits = useLimits();
  const count = (value: number, noun: string) => `${value} ${noun}${value === 1 ? '' : 's'}`;
  if (!limits) return 'All applications, files, API keys';
  const { createdApplicationsCount, uploadedFilesCount, apiKeyCount } = limits;
  return [
    count(createdApplicationsCount.currentValue, 'application'),
    count(uploadedFilesCount.currentValue, 'file'),
    count(apiKeyCount.currentValue, 'API key'),
  ].join(', ');
}
