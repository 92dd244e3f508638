import { getRouteApi, Link } from '@tanstack/react-router';
import { EntryPage } from '../../session/entry-page.tsx';
import { useReturn } from '../../session/return-to.ts';
import { SignInForm } from '../../session/sign-in-form.tsx';

const route = getRouteApi('/sign-in');

export function SignInPage() {
  const { returnTo } = route.useSearch();
  const leave = useReturn(returnTo);
  return (
    <EntryPage
      title="Sign in"
      footer={
        <>
          No account yet?{' '}
          <Link to="/sign-up" search={returnTo === undefined ? {} : { returnTo }}>
            Sign up
          </Link>
        </>
      }
    >
      <SignInForm onSignedIn={leave} />
    </EntryPage>
  );
}
