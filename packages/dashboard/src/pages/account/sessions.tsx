import type { OpenSession } from '@latchkey/client';
import { latchkey } from '../../api/client.ts';
import { sessionsQuery } from '../../api/queries.ts';
import { Button } from '../../components/button.tsx';
import { ConfirmButton } from '../../components/confirm-dialog.tsx';
import { Badge, Row, Rows, Section } from '../../components/page.tsx';
import { RelativeTime } from '../../components/relative-time.tsx';
import { QueryView } from '../../components/states.tsx';
import { signOut } from '../../session/sign-out.ts';
import { useAction } from '../../toast/use-action.ts';
import styles from './account.module.css';
import { describeDevice } from './device.ts';

export function Sessions() {
  return (
    <Section title="Sessions" description="Where you are signed in. End those that you do not know, then change your password.">
      <QueryView query={sessionsQuery}>
        {(sessions) => (
          <>
            <Rows as="ul">
              {sessions.map((session) => (
                <SessionRow key={session.id} session={session} />
              ))}
            </Rows>
            {sessions.length > 1 && <SignOutElsewhere sessions={sessions} />}
          </>
        )}
      </QueryView>
    </Section>
  );
}

function SessionRow({
  session: { id, current, createdAt, lastUsedAt, lastUsedIp, userAgent },
}: {
  readonly session: OpenSession;
}) {
  const device = describeDevice(userAgent);
  const end = useAction(() => latchkey.account.endSession(id), 'The session was not ended', ['Session ended', device]);
  return (
    <Row
      as="li"
      name={
        <>
          <bdi className={styles.device}>{device}</bdi> {current && <Badge kind="success">This session</Badge>}
        </>
      }
      title={userAgent ?? undefined}
      hint={
        <>
          Last used <RelativeTime at={lastUsedAt} />
          {lastUsedIp !== null && ` from ${lastUsedIp}`} · signed in <RelativeTime at={createdAt} />
        </>
      }
    >
      {current ? (
        <Button onClick={signOut}>Sign out</Button>
      ) : (
        <Button aria-label={`End session: ${device}`} pending={end.isPending} onClick={() => end.mutate()}>
          End session
        </Button>
      )}
    </Row>
  );
}

function SignOutElsewhere({ sessions }: { readonly sessions: readonly OpenSession[] }) {
  const others = sessions.filter(({ current }) => !current);
  const endAll = async () => {
    // One after the other: the list has up to 100.
    for (const { id } of others) await latchkey.account.endSession(id).catch(ignoreEnded);
  };
  return (
    <div className="cluster">
      <ConfirmButton
        button={
          <Button variant="dangerOutline" icon="signOut">
            Sign out elsewhere
          </Button>
        }
        title="Sign out elsewhere?"
        action="Sign out elsewhere"
        danger
        done={['Signed out elsewhere', others.length === 1 ? '1 session ended.' : `${others.length} sessions ended.`]}
        onConfirm={endAll}
      >
        {others.length === 1 ? 'The other session ends' : `The ${others.length} other sessions end`} immediately. This one and
        your API keys stay.
      </ConfirmButton>
    </div>
  );
}

function ignoreEnded(error: { readonly status?: number }): void {
  if (error.status !== 404) throw error;
}
