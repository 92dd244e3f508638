import type { Logger } from '../log/logger.ts';
import { channelOf, connectInBackground, createFailFastRedis } from './redis.ts';

/** An event of an application as the apps service publishes it. Later releases may add to it. */
export interface PublishedEvent {
  readonly id: string;
  readonly applicationId: string;
  readonly type: string;
  readonly epoch: string;
  /** Decimal; null for an event that clients do not hear of. */
  readonly sequence: string | null;
  readonly data: unknown;
  /** ISO 8601. */
  readonly createdAt: string;
}

const PUBLISH_MS_MAX = 1_000;

/** Publishes events to the nodes that have subscribed to their applications. */
export function createEventPublisher(url: string, logger: Logger, name: string, onReady?: () => void) {
  const options = { name, commandTimeout: PUBLISH_MS_MAX, reconnectDelayMsMax: 500 };
  const redis = createFailFastRedis(url, logger, options);
  if (onReady) redis.on('ready', onReady);
  return {
    /** Publishes all, in order. Throws within a second when Redis did not take all of them. */
    async publish(events: readonly PublishedEvent[]): Promise<void> {
      const pipeline = redis.pipeline();
      for (const event of events) pipeline.publish(channelOf(redis, 'realtime', event.applicationId), JSON.stringify(event));
      const results = (await pipeline.exec()) ?? [];
      for (const [err] of results) if (err) throw err;
    },
    connect: () => void connectInBackground(redis),
    close: () => redis.disconnect(),
  };
}
