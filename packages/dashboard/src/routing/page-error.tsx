import { LatchkeyError } from '@latchkey/client';
import { useRouter } from '@tanstack/react-router';
import { useEffect, useEffectEvent, useState } from 'react';
import { latchkey } from '../api/client.ts';
import { NOT_LOADED } from '../components/lazy-component.ts';
import { Title } from '../components/page.tsx';
import { ErrorState } from '../components/states.tsx';

/**
 * In place of a page that failed. It asks for the session before anything else: while the service
 * is away, a reload would lose the frame, and the router would show nothing.
 */
export function PageError({ error }: { readonly error: unknown }) {
  const router = useRouter();
  const [latest, setLatest] = useState(error);
  const isNotLoaded = error instanceof LatchkeyError && error.code === NOT_LOADED;
  /** Resolves once the service responds; shows why it does not. */
  const reach = (next: () => unknown) =>
    latchkey.account.session().then(next, (cause) => (cause.status === 401 ? next() : setLatest(cause)));
  // Browsers may keep a failed script, and another release has others: a reload gets them.
  const retry = () => reach(() => (isNotLoaded ? location.reload() : router.invalidate()));
  const findReason = useEffectEvent(() => void (isNotLoaded && reach(() => undefined)));
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
