import { LatchkeyError, type Session } from '@latchkey/client';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { latchkey } from '../api/client.ts';
import { Form } from '../components/form.tsx';
import { CodeField, TextField } from '../components/text-field.tsx';
import { sessionQuery } from './session.ts';

interface SignInFormProps {
  readonly onSignedIn: (session: Session) => unknown;
  /** The account whose session ended. */
  readonly email?: string | undefined;
  readonly aside?: ReactNode;
}

const hasCode = (error: unknown, code: string) => error instanceof LatchkeyError && error.code === code;

/** Email and password; then the code, where the account has a second factor. */
export function SignInForm({ onSignedIn, email, aside }: SignInFormProps) {
  const queryClient = useQueryClient();
  const signIn = useMutation({
    mutationFn: (values: FormData) => {
      const [mail = '', password = '', code = ''] = ['email', 'password', 'code'].map((name) => String(values.get(name) ?? ''));
      return latchkey.account.signIn({ email: mail.trim(), password, ...(code.trim() && { code: code.trim() }) });
    },
    meta: { opensSignIn: false },
    onSuccess: (session) => {
      queryClient.setQueryData(sessionQuery.queryKey, session);
      return onSignedIn(session);
    },
  });
  const { error } = signIn;
  const isUnknown = hasCode(error, 'unauth');
  // The code's input stays while the code is wrong.
  const needsCode = !isUnknown && (hasCode(error, 'two_factor_required') || signIn.variables?.has('code') === true);
  return (
    <Form
      onSubmit={(values) => signIn.mutate(values)}
      error={hasCode(error, 'two_factor_required') || isUnknown ? null : error}
      messages={isUnknown ? { password: 'The email or the password is wrong.' } : undefined}
      action={needsCode ? 'Verify' : 'Sign in'}
      pending={signIn.isPending}
      button={{ wide: true }}
    >
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
      {needsCode && (
        <CodeField autoFocus label="Two-factor code" hint="Six digits from your authenticator app, or a recovery code." />
      )}
    </Form>
  );
}
