import { useSyncExternalStore } from 'react';

/**
 * The token of a mailed link. It is in the fragment, which browsers send to no server, and which
 * alone changes when the link is opened in the tab that asked for it.
 */
export const useMailedToken = (): string | undefined => useSyncExternalStore(subscribe, readToken);

function readToken(): string | undefined {
  return new URLSearchParams(window.location.hash.slice(1)).get('token') ?? undefined;
}

function subscribe(onChange: () => void): () => void {
  window.addEventListener('hashchange', onChange);
  return () => window.removeEventListener('hashchange', onChange);
}
