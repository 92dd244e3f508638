import { LatchkeyError, type Session } from '@latchkey/client';
import { useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { latchkey } from '../api/client.ts';
import { sessionQuery } from '../api/queries.ts';
import { CodeField, Form, InputError, TextField } from '../components/form.tsx';

interface SignInFormProps {
  readonly onSignedIn: (session: Session) => unknown;
  /** The account whose session ended. */
  readonly email?: string | undefined;
  readonly aside?: ReactNode;
}

/** Email and password; then the code, where the account has a second factor. */
export function SignInForm({ onSignedIn, email, aside }: SignInFormProps) {
  const queryClient = useQueryClient();
  // The code's input stays while the code is wrong.
  const [needsCode, setNeedsCode] = useState(false);
  const explain = (error: unknown) => {
    const code = error instanceof LatchkeyError ? error.code : undefined;
    if (code === 'two_factor_required') return void setNeedsCode(true);
    if (code !== 'unauth') throw error;
    setNeedsCode(false);
    throw new InputError({ password: 'The email or the password is wrong.' });
  };
  const signIn = (values: FormData) => {
    const [mail = '', password = '', code = ''] = ['email', 'password', 'code'].map((name) => String(values.get(name) ?? ''));
    return latchkey.account.signIn({ email: mail.trim(), password, ...(code.trim() && { code: code.trim() }) }).catch(explain);
  };
  const finish = (session: Session | undefined) => {
    if (!session) return;
    queryClient.setQueryData(sessionQuery.queryKey, session);
    return onSignedIn(session);
  };
  return (
    <Form isEntry onSubmit={signIn} onDone={finish} action={needsCode ? 'Verify' : 'Sign in'}>
      <div hidden={needsCode}>
        <TextField
          name="email"
          label="Email"
          type="email"
          autoComplete="username"
          required
          defaultValue={email}
          readOnly={email !== undefined}
        />
      </div>
      <div hidden={needsCode}>
        <TextField name="password" label="Password" type="password" autoComplete="current-password" required aside={aside} />
      </div>
      {needsCode && <CodeField autoFocus />}
    </Form>
  );
}
