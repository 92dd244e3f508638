import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { forgetSessionEnd, hasSessionEnded } from './session-end.ts';
import { useLeave } from './sign-out.ts';
import { subscribeToTabs, tellOtherTabs } from './tabs.ts';

/** Follows the session of the other tabs: leaves after a sign-out, and goes on after a sign-in. */
export function useTabMessages(): void {
  const queryClient = useQueryClient();
  const leave = useLeave();
  useEffect(() => {
    tellOtherTabs('signed-in');
    return subscribeToTabs((message) => {
      if (message === 'signed-out') leave();
      else if (hasSessionEnded()) {
        forgetSessionEnd();
        // Another account leads to its first page.
        void queryClient.invalidateQueries();
      }
    });
  }, [queryClient, leave]);
}
