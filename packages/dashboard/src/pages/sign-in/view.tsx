import type { Session } from '@latchkey/client';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useEffect } from 'react';
import { latchkey } from '../../api/client.ts';
import { sessionQuery, signInMethodsQuery } from '../../api/queries.ts';
import { buttonClass } from '../../components/button.tsx';
import { CodeField, Form, showAt } from '../../components/form.tsx';
import { Notice } from '../../components/notice.tsx';
import styles from '../../session/entry-page.module.css';
import { EntryPage } from '../../session/entry-page.tsx';
import { rememberReturnTo, takeReturnTo, useReturn } from '../../session/return-to.ts';
import { SignInForm } from '../../session/sign-in-form.tsx';
import { subscribeToTabs } from '../../session/tabs.ts';

const route = getRouteApi('/sign-in');

export function SignInPage() {
  const { returnTo, error } = route.useSearch();
  const { data: methods } = useQuery(signInMethodsQuery);
  const leave = useReturn(returnTo);
  // The session that another tab opened leads from here to the dashboard.
  useEffect(() => subscribeToTabs((message) => message === 'signed-in' && location.reload()), []);
  if (error === 'two_factor_required') return <OidcCodePage />;
  const footer = (
    <>
      No account yet?{' '}
      <Link to="/sign-up" search={{ returnTo }}>
        Sign up
      </Link>
    </>
  );
  return (
    <EntryPage title="Sign in" footer={methods?.signUpOpen && footer}>
      {error !== undefined && (
        <Notice kind="danger" title="The sign-in at the issuer failed">
          <p>{Object.hasOwn(OIDC_ERRORS, error) ? OIDC_ERRORS[error] : 'Try again. If it fails again, ask the operator.'}</p>
        </Notice>
      )}
      <SignInForm onSignedIn={() => leave()} aside={<Link to="/reset-password">Forgot password?</Link>} />
      <Issuers names={methods?.oidcIssuers ?? []} returnTo={returnTo} />
    </EntryPage>
  );
}

const OIDC_ERRORS: Readonly<Record<string, string>> = {
  account_exists: 'An account has this email. Sign in to it, then link the issuer on the account page.',
  email_not_verified: 'The issuer has not verified your email. Verify it there, then try again.',
  sign_up_closed: 'No account is linked to you at the issuer, and sign-up is closed. Ask the operator for an account.',
  unauth: 'The sign-in took too long, or was begun in another browser. Try again.',
};

function Issuers({ names, returnTo }: { readonly names: readonly string[]; readonly returnTo: string | undefined }) {
  if (names.length === 0) return null;
  return (
    <div className="stack close">
      <p className={`${styles.or} line muted small`}>or</p>
      {names.map((name) => (
        <a
          key={name}
          className={buttonClass({ wide: true })}
          href={latchkey.oidc.signInUrl(name)}
          onClick={() => rememberReturnTo(returnTo)}
        >
          Sign in with {name.charAt(0).toUpperCase() + name.slice(1)}
        </a>
      ))}
    </div>
  );
}

/** After the visit to an issuer, for an account with two-factor authentication. */
function OidcCodePage() {
  const leave = useReturn();
  const queryClient = useQueryClient();
  const complete = (values: FormData) =>
    latchkey.oidc
      .complete(String(values.get('code')).trim())
      .catch(showAt('code', 'unauth', 'The sign-in took too long. Start again.'));
  const enter = (session: Session) => {
    queryClient.setQueryData(sessionQuery.queryKey, session);
    leave(takeReturnTo());
  };
  return (
    <EntryPage title="Enter your code" footer={<Link to="/sign-in">Start again</Link>}>
      <Form isEntry onSubmit={complete} onDone={enter} action="Verify">
        <CodeField autoFocus />
      </Form>
    </EntryPage>
  );
}
