import { LatchkeyError } from '@latchkey/client';
import { useRouter } from '@tanstack/react-router';
import { useEffect, useEffectEvent, useState } from 'react';
import { latchkey } from '../api/client.ts';
import { NOT_LOADED } from '../components/lazy-component.ts';
import { ErrorState } from '../components/states.tsx';
import { Title } from '../components/title.tsx';

/**
 * In place of a page that failed. It asks for the session before anything else: while the service
 * is away, a reload would lose the frame, and the router would show nothing.
 */
export function PageError({ error }: { readonly error: unknown }) {
  const router = useRouter();
  const [latest, setLatest] = useState(error);
  const isNotLoaded = error instanceof LatchkeyError && error.code === NOT_LOADED;
  const isReachable = async () => {
    try {
      await latchkey.account.session();
      return true;
    } catch (cause) {
      if (cause instanceof LatchkeyError && cause.status === 401) return true;
      setLatest(cause);
      return false;
    }
  };
  const retry = async () => {
    if (!(await isReachable())) return;
    // Browsers may keep a failed script, and another release has others: a reload gets them.
    if (isNotLoaded) location.reload();
    else await router.invalidate();
  };
  const findReason = useEffectEvent(() => isNotLoaded && void isReachable());
  useEffect(() => void findReason(), []);
  // Errors of the service are on the page: the console shows those of the dashboard.
  useEffect(() => void (error instanceof LatchkeyError || reportError(error)), [error]);
  return (
    <>
      <Title>Error</Title>
      <ErrorState page error={latest} onRetry={retry} />
    </>
  );
}
