import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { forgetSessionEnd, hasSessionEnded } from './session-end.ts';

/** Messages between the tabs of a browser, which share a session. */
type Message = 'signed-in' | 'signed-out';

const channel = new BroadcastChannel('latchkey-session');

export const tellOtherTabs = (message: Message) => channel.postMessage(message);

export function subscribeToTabs(listener: (message: Message) => void): () => void {
  const onMessage = ({ data }: MessageEvent<Message>) => listener(data);
  channel.addEventListener('message', onMessage);
  return () => channel.removeEventListener('message', onMessage);
}

/** Follows the session of the other tabs: leaves after a sign-out, and goes on after a sign-in. */
export function useTabMessages(leave: () => void): void {
  const queryClient = useQueryClient();
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
