import type { Redis } from '@latchkey/kit/redis/redis';
import type { Channels } from '../hub/hubs.ts';

const PREFIX = 'latchkey:realtime:';

/** Published where there is no frame: nodes compare the application with the event log. */
export const RECONCILE = 'look';

/** The Redis channel of an application, with the database, as Redis databases share channels. */
export const channelOf = ({ options }: Pick<Redis, 'options'>, applicationId: string): string =>
  `${PREFIX}${options.db ?? 0}:${applicationId}`;

/** Subscribes to applications on a connection. */
export function createChannels(subscriber: Redis): Channels {
  return {
    subscribe: async (applicationIds) =>
      void (await subscriber.subscribe(...applicationIds.map((id) => channelOf(subscriber, id)))),
    unsubscribe: (applicationId) => void subscriber.unsubscribe(channelOf(subscriber, applicationId)).catch(() => undefined),
  };
}

/** Calls back for each text that is published for an application. */
export function onPublished(subscriber: Redis, receive: (applicationId: string, text: string) => void): void {
  subscriber.on('message', (channel: string, text: string) => receive(channel.slice(channel.lastIndexOf(':') + 1), text));
}
