import type { Application } from '@latchkey/client';
import { useQuery } from '@tanstack/react-query';
import { latchkey } from '../../api/client.ts';
import { rotationsQuery } from '../../api/queries.ts';
import { Button } from '../../components/button.tsx';
import { ConfirmButton } from '../../components/confirm-dialog.tsx';
import { SecretField } from '../../components/copy-button.tsx';
import { SelectField } from '../../components/form.tsx';
import { Section } from '../../components/page.tsx';
import { RelativeTime } from '../../components/relative-time.tsx';
import { useAction } from '../../toast/use-action.ts';

const KEYS = [
  {
    type: 'socket',
    field: 'socketKey',
    previousField: 'previousSocketKey',
    name: 'Socket key',
    use: 'Opens the connection for live events.',
    consequence: 'Then the old key is rejected, and connections that were opened with it are closed.',
  },
  {
    type: 'http',
    field: 'httpKey',
    previousField: 'previousHttpKey',
    name: 'HTTP key',
    use: 'Authenticates the requests of your application.',
    consequence: 'Then the old key is rejected: copies of the application need the new one.',
  },
] as const;

const OVERLAPS = [
  [0, 'Immediately'],
  [3_600, 'After 1 hour'],
  [86_400, 'After 1 day'],
  [604_800, 'After 7 days'],
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
      <div className="stack">
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

function RuntimeKey({ application, runtimeKey: { type, field, previousField, name, use, consequence } }: RuntimeKeyProps) {
  const value = application.applicationApiKeys[field];
  const shortName = `${name.charAt(0).toLowerCase()}${name.slice(1)}`.replace('hTTP', 'HTTP');
  const previous = application.applicationApiKeys[previousField];
  const rotate = (values: FormData) => {
    const overlapSeconds = Number(values.get('overlap'));
    return latchkey.keys.rotate(application.id, type, { overlapSeconds, endPrevious: previous !== undefined });
  };
  const end = () => latchkey.keys.endOverlap(application.id, type);
  const endOverlap = useAction(end, `The overlap of the ${shortName} was not ended`);
  return (
    <div className="stack close">
      <div>
        <p className="strong">{name}</p>
        <p className="muted">{use}</p>
      </div>
      <SecretField name={shortName} value={value} prefixLength={value.lastIndexOf('_') + 1}>
        <ConfirmButton
          button={
            <Button small icon="rotate" aria-label={`Rotate ${shortName}`}>
              Rotate…
            </Button>
          }
          title={`Rotate the ${shortName} of ${application.name}?`}
          action={`Rotate ${shortName}`}
          danger
          fields={<SelectField name="overlap" label="The old key ends" options={OVERLAPS} />}
          done={[`${name} rotated`, 'Give the new one to your application.']}
          onConfirm={rotate}
        >
          {consequence} {previous && 'The key before it ends now. '}
          <Rotations applicationId={application.id} />
        </ConfirmButton>
      </SecretField>
      {previous && (
        <p className="muted">
          The previous key is accepted until <RelativeTime at={previous.expiresAt} />.{' '}
          {previous.lastUsedAt ? (
            <>
              It was last used <RelativeTime at={previous.lastUsedAt} />.
            </>
          ) : (
            'It was not used since.'
          )}{' '}
          <Button small aria-label={`End previous ${shortName} now`} onClick={() => endOverlap.mutate()}>
            End now
          </Button>
        </p>
      )}
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
