import { latchkey } from '../../api/client.ts';
import { DangerZone } from '../../components/confirm-dialog.tsx';
import { PageHeader, Section } from '../../components/page.tsx';
import { Skeleton } from '../../components/states.tsx';
import { UsageMeter } from '../../components/usage-meter.tsx';
import { ProofFields, readProof } from '../../session/owner-proof.tsx';
import { useAccount, useLimits } from '../../session/session.ts';
import { leaveEverywhere } from '../../session/sign-out.ts';
import { Profile } from './profile.tsx';
import { Sessions } from './sessions.tsx';
import { SignIn } from './sign-in.tsx';

export function AccountPage() {
  return (
    <>
      <PageHeader title="Account" description="Who you are, how you sign in, and what you use." />
      <Profile />
      <SignIn />
      <Sessions />
      <Usage />
      <DeleteAccount />
    </>
  );
}

function Usage() {
  const limits = useLimits();
  if (!limits) return <Skeleton />;
  const { planName, storageSizeMib, uploadedFilesCount, createdApplicationsCount, apiKeyCount } = limits;
  return (
    <Section title="Usage" description={`Limits of the plan “${planName}”. The operator sets them.`}>
      <div className="meters">
        <UsageMeter label="Storage" limit={storageSizeMib} unit=" MiB" />
        <UsageMeter label="Files" limit={uploadedFilesCount} />
        <UsageMeter label="Applications" limit={createdApplicationsCount} />
        <UsageMeter label="API keys" limit={apiKeyCount} />
      </div>
    </Section>
  );
}

function DeleteAccount() {
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
