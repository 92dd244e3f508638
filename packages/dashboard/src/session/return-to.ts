import { useRouter } from '@tanstack/react-router';
import { useCallback } from 'react';

/** A path of this site; undefined for anything else, such as a link to another site. */
export function readReturnTo(value: unknown): string | undefined {
  return typeof value === 'string' && /^\/(?![/\\])/.test(value) ? value : undefined;
}

/** Leads to the page that asked for the sign-in. */
export function useReturn(returnTo = '/applications'): () => void {
  const router = useRouter();
  return useCallback(() => router.history.replace(returnTo), [router, returnTo]);
}
