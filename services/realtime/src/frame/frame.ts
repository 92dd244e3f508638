import { type JsonObject, type MessageShape, toJson } from '@bufbuild/protobuf';
import { newId } from '@latchkey/kit/id';
import { ApplicationEventSchema } from '@latchkey/proto/latchkey/apps/v1/event_pb';
import { z } from 'zod';

/** An event as it goes to every socket of its application: serialised once. */
export interface Frame {
  /** Its place among those of the application. */
  readonly sequence: number;
  /** A CloudEvent in JSON; empty for an event that this release has no words for, which takes its place and is not sent. */
  readonly bytes: Buffer;
  /** Whether nothing comes after it: the application is deleted. */
  readonly isLast: boolean;
  /** When it happened, in milliseconds since 1970. */
  readonly at?: number;
}

/** An event of the log that live clients hear of. */
export interface LiveEvent {
  readonly id: string;
  readonly sequence: number;
  readonly createdAt: Date;
  readonly event: MessageShape<typeof ApplicationEventSchema>;
}

const TYPE_PREFIX = 'latchkey.application.';
const LAST_TYPE = `${TYPE_PREFIX}deleted`;

const sourceOf = (applicationId: string) => `/applications/${applicationId}`;

/**
 * The CloudEvent for an event (decisions 10, CloudEvents 1.0 JSON format), or undefined for one of a later release that this one has no words for.
 * Its `type` and `data` follow from the protocol's oneof.
 */
export function encodeEvent(applicationId: string, { id, sequence, createdAt, event }: LiveEvent): string | undefined {
  const { case: name } = event.event;
  if (name === undefined) return undefined;
  const json = toJson(ApplicationEventSchema, event) as Record<string, JsonObject>;
  return JSON.stringify({
    specversion: '1.0',
    id,
    source: sourceOf(applicationId),
    type: TYPE_PREFIX + ApplicationEventSchema.field[name].name,
    time: createdAt.toISOString(),
    datacontenttype: 'application/json',
    sequence: String(sequence),
    data: json[name],
  });
}

/** The frame of an event that comes from the log. */
export function frameOf(applicationId: string, event: LiveEvent): Frame {
  const text = encodeEvent(applicationId, event) ?? '';
  return {
    sequence: event.sequence,
    bytes: Buffer.from(text),
    isLast: event.event.event.case === 'deleted',
    at: event.createdAt.getTime(),
  };
}

const SEQUENCE = /^[1-9]\d{0,14}$/;
const frameFields = z.object({
  specversion: z.literal('1.0'),
  id: z.uuid(),
  source: z.string(),
  type: z.string().startsWith(TYPE_PREFIX),
  time: z.iso.datetime().transform((text) => Date.parse(text)),
  sequence: z.string().regex(SEQUENCE).transform(Number),
  data: z.looseObject({}),
});

/** The frame of a text that {@link encodeEvent} made for an application, or undefined for any other text: it would be sent to clients as it is. */
export function readFrame(applicationId: string, text: string): Frame | undefined {
  const result = frameFields.safeParse(parseJson(text));
  if (!result.success || result.data.source !== sourceOf(applicationId)) return undefined;
  const { sequence, type, time } = result.data;
  return { sequence, bytes: Buffer.from(text), isLast: type === LAST_TYPE, at: time };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What a client is told first (decisions 10). */
export interface Snapshot {
  readonly applicationId: string;
  readonly name: string;
  readonly status: 'online' | 'paused';
  readonly version: string;
  readonly lastSequence: number;
}

/** The first frame of a connection. `resumed` says whether all follows that the client has missed. */
export function encodeReady({ lastSequence, ...snapshot }: Snapshot, resumed: boolean, now: Date): string {
  return JSON.stringify({
    specversion: '1.0',
    id: newId(),
    source: sourceOf(snapshot.applicationId),
    type: 'latchkey.connection.ready',
    time: now.toISOString(),
    datacontenttype: 'application/json',
    data: { ...snapshot, lastSequence: String(lastSequence), resumed },
  });
}
