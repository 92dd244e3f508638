import { fromJson, type JsonValue } from '@bufbuild/protobuf';
import type { Logger } from '@latchkey/kit/log/logger';
import { stopAll } from '@latchkey/kit/process/lifecycle';
import { createQueueWorker } from '@latchkey/kit/queue/worker';
import { connectInBackground, createFailFastRedis, createSubscriber, type Redis } from '@latchkey/kit/redis/redis';
import { ApplicationEventSchema } from '@latchkey/proto/latchkey/apps/v1/event_pb';
import { z } from 'zod';
import { encodeEvent } from '../frame/frame.ts';

/** Published where there is no frame: nodes compare the application with the event log. */
export const RECONCILE = 'reconcile';

const PUBLISH_TIMEOUT_MS = 1_000;

/** The Redis channel of an application, with the database, as Redis databases share channels. */
export const channelOf = ({ options }: Pick<Redis, 'options'>, applicationId: string): string =>
  `latchkey:realtime:${options.db ?? 0}:${applicationId}`;

/** An event as the apps service relays it. Later releases may add to it. */
const relayedEvent = z.object({
  id: z.uuid().toLowerCase(),
  applicationId: z.uuid().toLowerCase(),
  type: z.string(),
  sequence: z
    .string()
    .regex(/^[1-9]\d*$/)
    .transform(Number)
    .nullable(),
  epoch: z.string(),
  data: z.json(),
  createdAt: z.iso.datetime().transform((text) => new Date(text)),
});

/** Publishes the events of the queue to the nodes that have subscribed to their application. */
export function createFanOut(options: {
  readonly redisUrl: string;
  readonly logger: Logger;
  readonly onPublished: (applicationId: string, text: string) => void;
  /** Called when Redis is ready, without any subscription. */
  readonly onReady: () => void;
}) {
  const { redisUrl, logger, onPublished, onReady } = options;
  const publisherOptions = { name: 'latchkey-realtime-publisher', commandTimeout: PUBLISH_TIMEOUT_MS };
  const publisher = createFailFastRedis(redisUrl, logger, publisherOptions);
  const subscriber = createSubscriber(redisUrl, logger, { name: 'latchkey-realtime-subscriber', onReady });
  subscriber.on('message', (channel: string, text: string) => onPublished(channel.slice(channel.lastIndexOf(':') + 1), text));
  const consumer = createQueueWorker({
    url: redisUrl,
    queue: 'realtime',
    name: 'latchkey-realtime-events',
    // One at a time, so that a process publishes events in their order.
    concurrency: 1,
    logger,
    async handle({ data }) {
      const event = relayedEvent.parse(data);
      const text = textFor(event);
      if (text !== undefined) await publisher.publish(channelOf(publisher, event.applicationId), text);
    },
  });
  return {
    async subscribe(applicationIds: readonly string[]): Promise<void> {
      await subscriber.subscribe(...applicationIds.map((id) => channelOf(subscriber, id)));
    },
    unsubscribe(applicationId: string): void {
      subscriber.unsubscribe(channelOf(subscriber, applicationId)).catch(() => undefined);
    },
    async start(): Promise<void> {
      await Promise.all([connectInBackground(publisher), connectInBackground(subscriber)]);
      consumer.start();
    },
    stop: () =>
      stopAll(
        () => consumer.stop(),
        () => subscriber.disconnect(),
        () => publisher.disconnect(),
      ),
  };
}

/** Message of an event: its frame, a request to reconcile, or none. */
function textFor({
  id,
  applicationId,
  type,
  epoch,
  sequence,
  data,
  createdAt,
}: z.output<typeof relayedEvent>): string | undefined {
  const event = fromJson(ApplicationEventSchema, { [type]: data as JsonValue }, { ignoreUnknownFields: true });
  if (event.event.case === 'runtimeKeyRotated') return event.event.value.type === 'socketKey' ? RECONCILE : undefined;
  if (sequence === null) return undefined;
  return encodeEvent(applicationId, { id, epoch, sequence, createdAt, event }) ?? RECONCILE;
}
