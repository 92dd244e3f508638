import type { Logger } from '../log/logger.ts';
import { channelOf, connectInBackground, createFailFastRedis, createSubscriber } from './redis.ts';

/** A change of what an account sees. It has no values: who shows them reads them again. */
export interface AccountChange {
  /** Part of the audit log's action before the dot, as `application`, or {@link LIVE_CLIENTS}. */
  readonly kind: string;
  readonly applicationId?: string | undefined;
}

export const LIVE_CLIENTS = 'live_clients';

/** The change that stands for any: messages may have been lost. */
export const ANY_CHANGE: AccountChange = { kind: 'any' };

/** Publishes changes of accounts. While Redis is away they are lost. */
export function createChangePublisher(url: string, logger: Logger, name: string) {
  const redis = createFailFastRedis(url, logger, { name });
  return {
    publish(accountId: string, change: AccountChange): void {
      // Otherwise the first one would connect.
      if (redis.status !== 'ready') return;
      redis.publish(channelOf(redis, 'changes', accountId), JSON.stringify(change)).catch(() => undefined);
    },
    start: () => void connectInBackground(redis),
    stop: async () => redis.disconnect(),
  };
}

/** Gets undefined when no more changes come. */
type Listener = (change: AccountChange | undefined) => void;

export type AccountChanges = ReturnType<typeof createAccountChanges>;

/** Passes the published changes of accounts on to listeners; one subscription for each account. */
export function createAccountChanges(url: string, logger: Logger, name: string) {
  const listenersOf = new Map<string, Set<Listener>>();
  const notify = (accountId: string, change: AccountChange | undefined) => {
    for (const listener of [...(listenersOf.get(accountId) ?? [])]) listener(change);
  };
  const resubscribe = async () => {
    const accountIds = [...listenersOf.keys()];
    if (accountIds.length === 0) return;
    await subscriber.subscribe(accountIds).catch(() => undefined);
    for (const accountId of accountIds) notify(accountId, ANY_CHANGE);
  };
  const subscriber = createSubscriber(url, logger, {
    name,
    topic: 'changes',
    onReady: () => void resubscribe(),
    onMessage: (accountId, text) => notify(accountId, readChange(text)),
  });
  return {
    start: subscriber.start,
    /** Tells all listeners that no more changes come. */
    stop(): void {
      for (const accountId of listenersOf.keys()) notify(accountId, undefined);
      subscriber.stop();
    },
    /**
     * Calls a listener with each change from the moment when the promise resolves, and with
     * {@link ANY_CHANGE} after an outage of Redis.
     *
     * @returns a function that ends it
     */
    async listen(accountId: string, listener: Listener): Promise<() => void> {
      const listeners = listenersOf.get(accountId) ?? new Set();
      listenersOf.set(accountId, listeners.add(listener));
      // Without Redis, it is subscribed when that is back.
      await subscriber.subscribe([accountId]).catch(() => undefined);
      return () => {
        if (!listeners.delete(listener) || listeners.size > 0) return;
        listenersOf.delete(accountId);
        subscriber.unsubscribe(accountId);
      };
    },
  };
}

function readChange(text: string): AccountChange {
  try {
    return JSON.parse(text);
  } catch {
    return ANY_CHANGE;
  }
}
