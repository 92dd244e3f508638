import { useMutation, useQueryClient } from '@tanstack/react-query';
import { latchkey } from '../../api/client.ts';
import { sessionQuery } from '../../api/queries.ts';
import { CodeField, Form, showAt } from '../../components/form.tsx';

/** Ends a sign-in at an issuer with the second factor. */
export function OidcCodeForm({ onSignedIn }: { readonly onSignedIn: () => void }) {
  const queryClient = useQueryClient();
  const completion = useMutation({
    mutationFn: (values: FormData) =>
      latchkey.oidc
        .complete(String(values.get('code')).trim())
        .catch(showAt('code', 'unauth', 'The sign-in took too long. Start again.')),
    meta: { opensSignIn: false },
    onSuccess: (session) => {
      queryClient.setQueryData(sessionQuery.queryKey, session);
      onSignedIn();
    },
  });
  return (
    <Form submission={completion} action="Verify" button={{ wide: true }}>
      <CodeField autoFocus />
    </Form>
  );
}
