import { LatchkeyError } from '@latchkey/client';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { latchkey } from '../../api/client.ts';
import { sessionQuery } from '../../api/queries.ts';
import { Button } from '../../components/button.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { EntryPage, useMailedToken } from '../../session/entry-page.tsx';
import { SignInForm } from '../../session/sign-in-form.tsx';
import { toast } from '../../toast/toasts.ts';

/** A press of a button, as programs that check mails open links too. */
export function ConfirmEmailPage() {
  const token = useMailedToken();
  const queryClient = useQueryClient();
  const navigate = useNavigate();
  const confirm = useMutation({
    mutationFn: () => latchkey.account.confirmEmail(token ?? ''),
    meta: { opensSignIn: false },
    onSuccess: async () => {
      await queryClient.invalidateQueries({ queryKey: sessionQuery.queryKey });
      toast.success('Email changed', 'Sign in with the new email from now on.');
      void navigate({ to: '/account', replace: true });
    },
  });
  const { error } = confirm;
  if (error instanceof LatchkeyError && error.status === 401) {
    return (
      <EntryPage title="Sign in to confirm your email">
        <SignInForm onSignedIn={() => confirm.mutate()} />
      </EntryPage>
    );
  }
  return (
    <EntryPage title="Confirm your email" footer={<Link to="/account">Account</Link>}>
      {error && <ErrorNotice error={error} />}
      <Button variant="primary" wide pending={confirm.isPending} onClick={() => confirm.mutate()}>
        Confirm email
      </Button>
    </EntryPage>
  );
}
