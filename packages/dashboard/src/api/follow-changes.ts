import type { Query, QueryClient } from '@tanstack/react-query';
import { hasSessionEnded, subscribeToSessionEnd } from '../session/session-end.ts';
import { isCount } from './queries.ts';
import { serverUrl } from './settings.ts';

interface Change {
  readonly kind: string;
  readonly applicationId?: string;
}

/** Pages read again once in this time at most, in milliseconds. */
const INTERVAL_MS = 1_000;
/** Time until another attempt after the stream was rejected, in milliseconds. */
const RETRY_MS = 30_000;

/**
 * Reads again what a page shows when that has changed elsewhere, while the page is visible.
 *
 * @returns a function that ends it
 */
export function followChanges(queryClient: QueryClient): () => void {
  let stream: EventSource | undefined;
  let wasOpen = false;
  let changes: Change[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  const readAgain = async () => {
    const seen = changes;
    changes = [];
    const predicate = (query: Query) => seen.some((change) => isOld(query, change));
    // The page of an application that was deleted goes first: it reads nothing more then.
    await queryClient.invalidateQueries({ predicate: (query) => isOfAll(query) && predicate(query) });
    await queryClient.invalidateQueries({ predicate: (query) => !isOfAll(query) && predicate(query) });
    // Another round would cancel the reads of this one: on a slow network, while changes come.
    timer = changes.length > 0 ? setTimeout(() => void readAgain(), INTERVAL_MS) : undefined;
  };
  const collect = (change: Change) => {
    changes.push(change);
    timer ??= setTimeout(() => void readAgain(), INTERVAL_MS);
  };
  const close = () => {
    clearTimeout(retry);
    stream?.close();
  };
  const open = () => {
    close();
    if (document.hidden) return;
    stream = new EventSource(`${serverUrl}/api/v1/auth/changes`);
    stream.onopen = () => {
      // Changes during the lost connection are unknown.
      if (wasOpen) collect({ kind: 'any' });
      wasOpen = true;
    };
    stream.onmessage = ({ data }) => collect(JSON.parse(data));
    // The browser reconnects by itself, except after a response other than a stream.
    stream.onerror = () => {
      if (stream?.readyState !== EventSource.CLOSED) return;
      // The session may have ended.
      collect({ kind: 'account' });
      retry = setTimeout(open, RETRY_MS);
    };
  };
  document.addEventListener('visibilitychange', open);
  const unsubscribe = subscribeToSessionEnd(() => !hasSessionEnded() && open());
  open();
  return () => {
    unsubscribe();
    document.removeEventListener('visibilitychange', open);
    clearTimeout(timer);
    changes = [];
    close();
  };
}

/** True for the list that says which applications exist. */
const isOfAll = ({ queryKey }: Query) => queryKey.length === 1 && queryKey[0] === 'applications';

/** A change makes all but counts old. Of many applications at a time, no ids come. */
function isOld(query: Query, { kind, applicationId }: Change): boolean {
  const [name, id] = query.queryKey;
  if (kind === 'live_clients') return name === 'live-clients' && (applicationId ?? id) === id;
  return kind === 'any' || !isCount(query);
}
