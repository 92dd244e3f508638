import { useRouter } from '@tanstack/react-router';
import { useCallback } from 'react';
import { latchkey } from '../api/client.ts';
import { toast } from '../toast/toasts.ts';
import { beginLeaving } from './session-end.ts';
import { tellOtherTabs } from './tabs.ts';

/**
 * Loads the sign-in page anew: nothing of the account stays in memory. Until then the page keeps
 * its data, without which it would suspend.
 */
export function useLeave(): () => void {
  const router = useRouter();
  return useCallback(() => {
    beginLeaving();
    location.assign(router.buildLocation({ to: '/sign-in' }).publicHref);
  }, [router]);
}

/** Leaves in all tabs, once the session has ended. */
export function useLeaveEverywhere(): () => void {
  const leave = useLeave();
  return useCallback(() => {
    tellOtherTabs('signed-out');
    leave();
  }, [leave]);
}

/** Ends the session. */
export function useSignOut(): () => Promise<void> {
  const leave = useLeaveEverywhere();
  return useCallback(async () => {
    try {
      await latchkey.account.signOut();
    } catch (error) {
      // 401: the session had ended already.
      if ((error as { status?: number }).status !== 401) {
        toast.error('You are still signed in', error);
        return;
      }
    }
    leave();
  }, [leave]);
}
