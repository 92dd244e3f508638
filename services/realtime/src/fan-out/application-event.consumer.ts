import { fromJson, type JsonValue } from '@bufbuild/protobuf';
import type { Logger } from '@latchkey/kit/logger';
import { createQueueWorker, type QueueWorker } from '@latchkey/kit/queue-worker';
import { ApplicationEventSchema } from '@latchkey/proto/latchkey/apps/v1/event_pb';
import { z } from 'zod';
import { encodeEvent } from '../frame/frame.ts';
import { LOOK } from './channel.ts';

/** The queue that the apps service adds to what this service wants to know. */
const QUEUE = 'realtime';

/** One at a time, so that one process passes events on in the order in which they came. */
const CONCURRENCY = 1;

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

/** What events are passed on with. */
export interface ConsumerOptions {
  readonly redisUrl: string;
  /** Publishes a text for the nodes that hold sockets of an application. */
  readonly publish: (applicationId: string, text: string) => Promise<void>;
  readonly logger: Logger;
}

/** Passes on what the queue tells of to all nodes, whenever Redis can be reached. What fails is tried again by the queue. */
export function createEventConsumer({ redisUrl, publish, logger }: ConsumerOptions): QueueWorker {
  return createQueueWorker({
    url: redisUrl,
    queue: QUEUE,
    name: 'latchkey-realtime-events',
    concurrency: CONCURRENCY,
    logger,
    async handle({ data }) {
      const relayed = relayedEvent.parse(data);
      const text = textFor(relayed);
      if (text !== undefined) await publish(relayed.applicationId, text);
    },
  });
}

/** What the nodes are told: the frame, or to look; nothing of what concerns no socket. */
function textFor({ id, applicationId, type, sequence, data, createdAt }: z.output<typeof relayedEvent>): string | undefined {
  const event = fromJson(ApplicationEventSchema, { [type]: data as JsonValue }, { ignoreUnknownFields: true });
  if (event.event.case === 'runtimeKeyRotated') return event.event.value.type === 'socketKey' ? LOOK : undefined;
  if (sequence === null) return undefined;
  return encodeEvent(applicationId, { id, sequence, createdAt, event }) ?? LOOK;
}
