import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { latchkey } from '../../api/client.ts';
import { Form, NewPasswordField, TextField } from '../../components/form.tsx';
import { Notice } from '../../components/notice.tsx';
import { EntryPage, useMailedToken } from '../../session/entry-page.tsx';
import { toast } from '../../toast/toasts.ts';

/** Asks for a mail, or for the new password where its link was opened. */
export function ResetPasswordPage() {
  const token = useMailedToken();
  return (
    <EntryPage title="Reset your password" footer={<Link to="/sign-in">Sign in</Link>}>
      {token === undefined ? <MailForm /> : <PasswordForm key={token} token={token} />}
    </EntryPage>
  );
}

function MailForm() {
  const [isSent, setSent] = useState(false);
  const send = (values: FormData) => latchkey.account.forgotPassword(String(values.get('email')).trim());
  if (isSent) {
    return (
      <Notice kind="info" title="Check your mail">
        <p>If an account has this email, a mail with a link is on its way. The link is valid once, for 30 minutes.</p>
      </Notice>
    );
  }
  return (
    <Form isEntry onSubmit={send} onDone={() => setSent(true)} action="Send mail">
      <TextField name="email" label="Email" type="email" autoComplete="email" required />
    </Form>
  );
}

function PasswordForm({ token }: { readonly token: string }) {
  const navigate = useNavigate();
  const reset = (values: FormData) => latchkey.account.resetPassword({ token, newPassword: String(values.get('newPassword')) });
  const signIn = () => {
    toast.success('Password changed', 'All sessions of the account have ended. Sign in with the new password.');
    void navigate({ to: '/sign-in', replace: true });
  };
  return (
    <Form isEntry onSubmit={reset} onDone={signIn} action="Change password">
      <NewPasswordField />
    </Form>
  );
}
