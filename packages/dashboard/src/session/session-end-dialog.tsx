import type { Session } from '@latchkey/client';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useRef, useSyncExternalStore } from 'react';
import { sessionQuery } from '../api/queries.ts';
import { basePath } from '../api/settings.ts';
import { Dialog } from '../components/dialog.tsx';
import { useAccount } from './session.ts';
import { forgetSessionEnd, hasSessionEnded, subscribeToSessionEnd } from './session-end.ts';
import { SignInForm } from './sign-in-form.tsx';
import { tellOtherTabs } from './tabs.ts';

/** Over the page when its session has ended: after the sign-in, the page goes on with its inputs. */
export function SessionEndDialog() {
  const hasEnded = useSyncExternalStore(subscribeToSessionEnd, hasSessionEnded);
  const queryClient = useQueryClient();
  const { id, email } = useOwnAccount();
  const resume = (session: Session) => {
    if (session.account.id !== id) return location.assign(basePath);
    forgetSessionEnd();
    tellOtherTabs('signed-in');
    // The forms of the page keep their inputs, and their buttons work again.
    return queryClient.invalidateQueries();
  };
  return (
    <Dialog
      open={hasEnded}
      stays
      onClose={forgetSessionEnd}
      title="Your session has ended"
      description="Sign in again to go on. What you entered on this page is still there."
    >
      <SignInForm email={email} onSignedIn={resume} />
    </Dialog>
  );
}

/** The account that the page was loaded for. Another tab may sign in to another one. */
function useOwnAccount() {
  const account = useAccount();
  const own = useRef(account).current;
  useQuery({ ...sessionQuery, refetchOnWindowFocus: 'always', meta: { opensSignIn: true } });
  if (account.id !== own.id) location.assign(basePath);
  return own;
}
