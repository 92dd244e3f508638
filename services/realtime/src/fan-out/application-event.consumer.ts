import { fromJson, type JsonValue } from '@bufbuild/protobuf';
import type { Logger } from '@latchkey/kit/log/logger';
import { createQueueWorker, type QueueWorker } from '@latchkey/kit/queue/worker';
import { ApplicationEventSchema } from '@latchkey/proto/latchkey/apps/v1/event_pb';
import { z } from 'zod';
import { encodeEvent } from '../frame/frame.ts';
import { RECONCILE } from './application-channel.ts';

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
  data: z.json(),
  createdAt: z.iso.datetime().transform((text) => new Date(text)),
});

/** Publishes the events of the queue to all nodes. The queue retries failures. */
export function createEventConsumer(
  redisUrl: string,
  publish: (applicationId: string, text: string) => Promise<void>,
  logger: Logger,
): QueueWorker {
  return createQueueWorker({
    url: redisUrl,
    queue: 'realtime',
    name: 'latchkey-realtime-events',
    // One at a time, so that a process publishes events in their order.
    concurrency: 1,
    logger,
    async handle({ data }) {
      const relayed = relayedEvent.parse(data);
      const text = textFor(relayed);
      if (text !== undefined) await publish(relayed.applicationId, text);
    },
  });
}

/** What is published of an event: its frame, a request to reconcile, or nothing. */
function textFor({ id, applicationId, type, sequence, data, createdAt }: z.output<typeof relayedEvent>): string | undefined {
  const event = fromJson(ApplicationEventSchema, { [type]: data as JsonValue }, { ignoreUnknownFields: true });
  if (event.event.case === 'runtimeKeyRotated') return event.event.value.type === 'socketKey' ? RECONCILE : undefined;
  if (sequence === null) return undefined;
  return encodeEvent(applicationId, { id, sequence, createdAt, event }) ?? RECONCILE;
}
