import type { Session } from '@latchkey/client';
import { USERNAME_LENGTH } from '@latchkey/contract/username';
import { useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { latchkey } from '../../api/client.ts';
import { sessionQuery } from '../../api/queries.ts';
import { Form, NewPasswordField, showAt, TextField } from '../../components/form.tsx';
import { EntryPage } from '../../session/entry-page.tsx';
import { useReturn } from '../../session/return-to.ts';

const route = getRouteApi('/sign-up');

export function SignUpPage() {
  const { returnTo } = route.useSearch();
  return (
    <EntryPage
      title="Create your account"
      footer={
        <>
          Already have an account?{' '}
          <Link to="/sign-in" search={{ returnTo }}>
            Sign in
          </Link>
        </>
      }
    >
      <SignUpForm returnTo={returnTo} />
    </EntryPage>
  );
}

function SignUpForm({ returnTo }: { readonly returnTo: string | undefined }) {
  const queryClient = useQueryClient();
  const leave = useReturn(returnTo);
  const signUp = (values: FormData) => {
    const [username = '', email = '', password = ''] = ['username', 'email', 'password'].map((name) => String(values.get(name)));
    return latchkey.account
      .signUp({ username: username.trim(), email: email.trim(), password })
      .catch(showAt('username', 'account_exists', 'An account has this user name or this email.'));
  };
  const enter = (session: Session) => {
    queryClient.setQueryData(sessionQuery.queryKey, session);
    leave();
  };
  return (
    <Form isEntry onSubmit={signUp} onDone={enter} action="Create account">
      <TextField
        name="username"
        label="User name"
        hint={`${USERNAME_LENGTH.min} to ${USERNAME_LENGTH.max} letters, digits, dashes and underscores.`}
        autoComplete="username"
        autoCapitalize="none"
        required
      />
      <TextField name="email" label="Email" type="email" autoComplete="email" required />
      <NewPasswordField name="password" label="Password" />
    </Form>
  );
}
