import { latchkey } from '../../api/client.ts';
import { Button } from '../../components/button.tsx';
import { Section } from '../../components/page.tsx';
import { Row } from '../../components/row.tsx';
import { useAccount, useLimits } from '../../session/session.ts';
import { useLeaveEverywhere } from '../../session/sign-out.ts';
import { readProof } from './owner-proof.tsx';
import { ProofButton } from './proof-dialog.tsx';

export function DeleteAccount() {
  const { username } = useAccount();
  const consequence = useConsequence();
  const leave = useLeaveEverywhere();
  const remove = async (values: FormData) => {
    await latchkey.account.delete(readProof(values));
    leave();
  };
  return (
    <Section title="Danger zone" dangerous>
      <Row name="Delete this account" hint="With everything that it owns. This cannot be undone.">
        <ProofButton
          button={
            <Button variant="dangerOutline" icon="trash">
              Delete account
            </Button>
          }
          title={`Delete the account ${username}?`}
          description={consequence}
          action="Delete account"
          danger
          typeName={username}
          onConfirm={remove}
        />
      </Row>
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
