import { useRouter } from '@tanstack/react-router';
import { basePath } from '../api/settings.ts';
import { readReturnTo } from '../routing/search.ts';

const STORAGE_KEY = 'latchkey-return-to';

/** Remembers where to return to, in this tab, while the browser is at an issuer. */
export function rememberReturnTo(returnTo: string | undefined): void {
  try {
    if (returnTo === undefined) sessionStorage.removeItem(STORAGE_KEY);
    else sessionStorage.setItem(STORAGE_KEY, returnTo);
  } catch {
    // Browsers may forbid storage: the sign-in then leads to the first page.
  }
}

export function takeReturnTo(): string | undefined {
  try {
    const returnTo = readReturnTo(sessionStorage.getItem(STORAGE_KEY));
    sessionStorage.removeItem(STORAGE_KEY);
    return returnTo;
  } catch {
    return undefined;
  }
}

/** Leads to the page that asked for the sign-in. */
export function useReturn(returnTo?: string): (other?: string) => void {
  const router = useRouter();
  return (other) => router.history.replace(basePath.slice(0, -1) + (readReturnTo(other ?? returnTo) ?? '/applications'));
}
