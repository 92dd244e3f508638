import type { Redis } from '@latchkey/kit/redis';
import type { Channels } from '../hub/hubs.ts';
import { applicationOf, channelOf } from './channel.ts';

/** The channels of a subscriber's connection. */
export function createChannels(subscriber: Redis): Channels {
  return {
    subscribe: async (applicationIds) =>
      void (await subscriber.subscribe(...applicationIds.map((id) => channelOf(subscriber, id)))),
    unsubscribe: (applicationId) => void subscriber.unsubscribe(channelOf(subscriber, applicationId)).catch(() => undefined),
  };
}

/** Calls back for each text that is published for an application. */
export function onPublished(subscriber: Redis, receive: (applicationId: string, text: string) => void): void {
  subscriber.on('message', (channel: string, text: string) => receive(applicationOf(channel), text));
}
