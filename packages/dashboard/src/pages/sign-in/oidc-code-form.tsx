import { LatchkeyError } from '@latchkey/client';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { latchkey } from '../../api/client.ts';
import { Form } from '../../components/form.tsx';
import { Notice } from '../../components/notice.tsx';
import { CodeField } from '../../components/text-field.tsx';
import { sessionQuery } from '../../session/session.ts';

/** Ends a sign-in at an issuer with the second factor. */
export function OidcCodeForm({ onSignedIn }: { readonly onSignedIn: () => void }) {
  const queryClient = useQueryClient();
  const completion = useMutation({
    mutationFn: (values: FormData) => latchkey.oidc.complete(String(values.get('code')).trim()),
    meta: { opensSignIn: false },
    onSuccess: (session) => {
      queryClient.setQueryData(sessionQuery.queryKey, session);
      onSignedIn();
    },
  });
  const { error } = completion;
  const isOver = error instanceof LatchkeyError && error.code === 'unauth';
  return (
    <Form
      onSubmit={(values) => completion.mutate(values)}
      error={isOver ? null : error}
      action="Verify"
      pending={completion.isPending}
      button={{ wide: true }}
    >
      {isOver && <Notice kind="danger" title="The sign-in took too long. Start again." />}
      <CodeField autoFocus label="Two-factor code" hint="Six digits from your authenticator app, or a recovery code." />
    </Form>
  );
}
