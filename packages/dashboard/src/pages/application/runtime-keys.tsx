import type { Application } from '@latchkey/client';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { latchkey } from '../../api/client.ts';
import { Button } from '../../components/button.tsx';
import { ConfirmDialog } from '../../components/confirm-dialog.tsx';
import { Section } from '../../components/page.tsx';
import { RelativeTime } from '../../components/relative-time.tsx';
import { SecretField } from '../../components/secret-field.tsx';
import { toast } from '../../toast/toasts.ts';
import { applicationsQuery } from '../applications/queries.ts';
import styles from './overview.module.css';
import { rotationsQuery } from './queries.ts';

const KEYS = [
  {
    type: 'socket',
    field: 'socketKey',
    name: 'Socket key',
    use: 'Opens the connection for live events.',
    consequence: 'Connections that were opened with the old key are closed, and the old key is rejected from then on.',
  },
  {
    type: 'http',
    field: 'httpKey',
    name: 'HTTP key',
    use: 'Authenticates the requests of your application.',
    consequence: 'The old key is rejected from then on: copies of the application need the new one.',
  },
] as const;

export function RuntimeKeys({ application }: { readonly application: Application }) {
  const { applicationApiKeys } = application;
  const description = (
    <>
      Your application connects with them. Last changed <RelativeTime at={applicationApiKeys.updatedAt} />.
    </>
  );
  return (
    <Section title="Runtime keys" description={description}>
      <div className={styles.keys}>
        {KEYS.map((key) => (
          <RuntimeKey key={key.type} application={application} runtimeKey={key} />
        ))}
      </div>
    </Section>
  );
}

interface RuntimeKeyProps {
  readonly application: Application;
  readonly runtimeKey: (typeof KEYS)[number];
}

function RuntimeKey({ application, runtimeKey: { type, field, name, use, consequence } }: RuntimeKeyProps) {
  const [isAsking, setAsking] = useState(false);
  const queryClient = useQueryClient();
  const value = application.applicationApiKeys[field];
  const shortName = `${name.charAt(0).toLowerCase()}${name.slice(1)}`.replace('hTTP', 'HTTP');
  const rotate = async () => {
    await latchkey.keys.rotate(application.id, type);
    await queryClient.invalidateQueries({ queryKey: applicationsQuery.queryKey });
    void queryClient.invalidateQueries({ queryKey: rotationsQuery(application.id).queryKey });
    toast.success(`${name} rotated`, 'Give the new one to your application.');
  };
  return (
    <div className={styles.key}>
      <div>
        <p className={styles.name}>{name}</p>
        <p className={styles.hint}>{use}</p>
      </div>
      {/* A new key is masked again. */}
      <SecretField key={value} name={shortName} value={value} prefixLength={value.lastIndexOf('_') + 1}>
        <Button small icon="rotate" aria-label={`Rotate ${shortName}`} onClick={() => setAsking(true)}>
          Rotate…
        </Button>
      </SecretField>
      <ConfirmDialog
        open={isAsking}
        onClose={() => setAsking(false)}
        title={`Rotate the ${shortName} of ${application.name}?`}
        action={`Rotate ${shortName}`}
        danger
        onConfirm={rotate}
      >
        {consequence} <Rotations applicationId={application.id} />
      </ConfirmDialog>
    </div>
  );
}

function Rotations({ applicationId }: { readonly applicationId: string }) {
  const { data: rotations } = useQuery(rotationsQuery(applicationId));
  const count = rotations?.length ?? 0;
  return (
    <>
      The keys of an application can be rotated twice an hour, unless the operator set another limit. Rotations in the last hour:{' '}
      {count}.
    </>
  );
}
