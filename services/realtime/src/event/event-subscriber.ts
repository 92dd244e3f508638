import type { Logger } from '@latchkey/kit/log/logger';
import { eventChannelOf } from '@latchkey/kit/redis/live-channels';
import { connectInBackground, createSubscriber } from '@latchkey/kit/redis/redis';

/** Receives the published events of the applications that a node has subscribed to. */
export function createEventSubscriber(options: {
  readonly redisUrl: string;
  readonly logger: Logger;
  readonly onPublished: (applicationId: string, text: string) => void;
  /** Called when Redis is ready, without any subscription. */
  readonly onReady: () => void;
}) {
  const { redisUrl, logger, onPublished, onReady } = options;
  const subscriber = createSubscriber(redisUrl, logger, { name: 'latchkey-realtime-subscriber', onReady });
  subscriber.on('message', (channel: string, text: string) => onPublished(channel.slice(channel.lastIndexOf(':') + 1), text));
  return {
    async subscribe(applicationIds: readonly string[]): Promise<void> {
      await subscriber.subscribe(...applicationIds.map((id) => eventChannelOf(subscriber, id)));
    },
    unsubscribe(applicationId: string): void {
      subscriber.unsubscribe(eventChannelOf(subscriber, applicationId)).catch(() => undefined);
    },
    start: () => connectInBackground(subscriber),
    stop: () => subscriber.disconnect(),
  };
}
