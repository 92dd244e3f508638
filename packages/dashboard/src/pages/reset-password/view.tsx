import { LatchkeyError } from '@latchkey/client';
import { PASSWORD } from '@latchkey/contract/lengths';
import { useMutation } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { latchkey } from '../../api/client.ts';
import { Form } from '../../components/form.tsx';
import { Notice } from '../../components/notice.tsx';
import { TextField } from '../../components/text-field.tsx';
import { EntryPage } from '../../session/entry-page.tsx';
import { useMailedToken } from '../../session/mailed-token.ts';
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
  const forgot = useMutation({
    mutationFn: (values: FormData) => latchkey.account.forgotPassword(String(values.get('email')).trim()),
    meta: { opensSignIn: false },
  });
  if (forgot.isSuccess) {
    return (
      <Notice kind="info" title="Check your mail">
        <p>If an account has this email, a mail with a link is on its way. The link is valid once, for 30 minutes.</p>
      </Notice>
    );
  }
  const { error } = forgot;
  const isMissing = error instanceof LatchkeyError && error.code === 'mail_not_configured';
  return (
    <Form
      onSubmit={(values) => forgot.mutate(values)}
      error={isMissing ? null : error}
      messages={isMissing ? { email: 'This Latchkey sends no mail. Ask its operator to reset your password.' } : undefined}
      action="Send mail"
      pending={forgot.isPending}
      button={{ wide: true }}
    >
      <TextField name="email" label="Email" type="email" autoComplete="email" required />
    </Form>
  );
}

function PasswordForm({ token }: { readonly token: string }) {
  const navigate = useNavigate();
  const reset = useMutation({
    mutationFn: (values: FormData) => latchkey.account.resetPassword({ token, newPassword: String(values.get('newPassword')) }),
    meta: { opensSignIn: false },
    onSuccess: () => {
      toast.success('Password changed', 'All sessions of the account have ended. Sign in with the new password.');
      void navigate({ to: '/sign-in', replace: true });
    },
  });
  const isVoid = reset.error instanceof LatchkeyError && reset.error.details.some(({ path }) => path === 'body.token');
  return (
    <Form
      onSubmit={(values) => reset.mutate(values)}
      error={isVoid ? null : reset.error}
      messages={isVoid ? { newPassword: 'The link was used, or is over 30 minutes old. Ask for another mail.' } : undefined}
      action="Change password"
      pending={reset.isPending}
      button={{ wide: true }}
    >
      <TextField
        name="newPassword"
        label="New password"
        type="password"
        hint={`At least ${PASSWORD.min} characters.`}
        autoComplete="new-password"
        required
      />
    </Form>
  );
}
