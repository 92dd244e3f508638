import { PageHeader, Section } from '../../components/page.tsx';
import { Rows } from '../../components/row.tsx';
import { Skeleton } from '../../components/skeleton.tsx';
import { UsageMeter } from '../../components/usage-meter.tsx';
import { useLimits } from '../../session/session.ts';
import styles from './account.module.css';
import { DeleteAccount } from './delete-account.tsx';
import { LinkedIssuers } from './linked-issuers.tsx';
import { PasswordRow } from './password.tsx';
import { Profile } from './profile.tsx';
import { Sessions } from './sessions.tsx';
import { TwoFactorRow } from './two-factor.tsx';

export function AccountPage() {
  return (
    <>
      <PageHeader title="Account" description="Who you are, how you sign in, and what you use." />
      <Profile />
      <Section title="Sign-in">
        <Rows>
          <PasswordRow />
          <TwoFactorRow />
          <LinkedIssuers />
        </Rows>
      </Section>
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
  const meters = [
    ['Storage', storageSizeMib, ' MiB'],
    ['Files', uploadedFilesCount, ''],
    ['Applications', createdApplicationsCount, ''],
    ['API keys', apiKeyCount, ''],
  ] as const;
  return (
    <Section title="Usage" description={`Limits of the plan “${planName}”. The operator sets them.`}>
      <div className={styles.meters}>
        {meters.map(([label, { currentValue, maxValue }, unit]) => (
          <UsageMeter key={label} label={label} current={currentValue} max={maxValue} unit={unit} />
        ))}
      </div>
    </Section>
  );
}
