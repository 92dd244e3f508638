import { latchkey } from '../api/client.ts';
import { serverUrl } from '../api/settings.ts';
import { toast } from '../toast/toasts.ts';
import { beginLeaving } from './session-end.ts';
import { tellOtherTabs } from './tabs.ts';

/**
 * Loads the sign-in page anew: nothing of the account stays in memory. Until then the page keeps
 * its data, without which it would suspend.
 */
export function leave(): void {
  beginLeaving();
  location.assign(`${serverUrl}/sign-in`);
}

/** Leaves in all tabs, once the session has ended. */
export function leaveEverywhere(): void {
  tellOtherTabs('signed-out');
  leave();
}

/** Ends the session. */
export async function signOut(): Promise<void> {
  try {
    await latchkey.account.signOut();
  } catch (error) {
    // 401: the session had ended already.
    if ((error as { status?: number }).status !== 401) return void toast.error('You are still signed in', error);
  }
  leaveEverywhere();
}
