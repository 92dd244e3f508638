import { fromJson, type JsonObject, type JsonValue, type MessageShape, toJson } from '@bufbuild/protobuf';
import { LIVE_EVENT_TYPE_PREFIX, toCloudEvent } from '@latchkey/contract/cloud-event';
import { newId } from '@latchkey/kit/validation/id';
import { ApplicationEventSchema } from '@latchkey/proto/latchkey/apps/v1/event_pb';

/** An event as it is sent to every socket, serialised once. */
export interface Frame {
  readonly epoch: string;
  readonly sequence: number;
  /** A CloudEvent in JSON; empty, and not sent, for an event type of a later release. */
  readonly bytes: Buffer;
  /** True if it is the application's deletion. */
  readonly isLast: boolean;
  /** Time of the event, in milliseconds since 1970. */
  readonly at: number;
}

export interface LiveEvent {
  readonly id: string;
  readonly epoch: string;
  readonly sequence: number;
  readonly createdAt: Date;
  readonly event: MessageShape<typeof ApplicationEventSchema>;
}

export const CONNECTION_READY = 'latchkey.connection.ready';
export const KEY_EXPIRING = 'latchkey.connection.key_expiring';

/** The frame of an event, with `type` and `data` from the protocol's oneof. */
export function frameOf(applicationId: string, { id, epoch, sequence, createdAt, event }: LiveEvent): Frame {
  const { case: name } = event.event;
  const json = toJson(ApplicationEventSchema, event) as Record<string, JsonObject>;
  const type = name && LIVE_EVENT_TYPE_PREFIX + ApplicationEventSchema.field[name].name;
  const facts = type && { id, type, time: createdAt.toISOString(), epoch, sequence: String(sequence), data: json[name] ?? {} };
  const bytes = Buffer.from(facts ? JSON.stringify(toCloudEvent(applicationId, facts)) : '');
  return { epoch, sequence, bytes, isLast: name === 'deleted', at: createdAt.getTime() };
}

const SEQUENCE = /^[1-9]\d{0,14}$/;

type Published = Readonly<Record<'id' | 'type' | 'epoch' | 'createdAt', string> & { data: JsonValue; sequence: unknown }>;

/**
 * The frame of a published event; undefined for other texts, and for an event without a sequence,
 * as a rotation of a runtime key is.
 */
export function readFrame(applicationId: string, text: string): Frame | undefined {
  try {
    const { type, data, sequence, createdAt, ...facts } = JSON.parse(text) as Published;
    if (typeof sequence !== 'string' || !SEQUENCE.test(sequence)) return undefined;
    const event = fromJson(ApplicationEventSchema, { [type]: data }, { ignoreUnknownFields: true });
    return frameOf(applicationId, { ...facts, sequence: Number(sequence), createdAt: new Date(createdAt), event });
  } catch {
    return undefined;
  }
}

/** The state of an application, in the first frame of a connection. */
export interface Snapshot {
  readonly applicationId: string;
  readonly name: string;
  readonly status: 'online' | 'paused';
  readonly version: string;
  readonly lastSequence: number;
  /** Epoch of the event log that the sequence belongs to. */
  readonly epoch: string;
}

export function encodeReady({ lastSequence, epoch, ...snapshot }: Snapshot, resumed: boolean): string {
  const data = { ...snapshot, lastSequence: String(lastSequence), resumed };
  return encodeOwn(CONNECTION_READY, snapshot.applicationId, epoch, data);
}

/** Frame for a socket whose key was rotated with an overlap. */
export function encodeKeyExpiring(applicationId: string, epoch: string, expiresAt: Date): string {
  return encodeOwn(KEY_EXPIRING, applicationId, epoch, { expiresAt: expiresAt.toISOString() });
}

/** A CloudEvent of a connection, which is not in the event log and has no sequence. */
function encodeOwn(type: string, applicationId: string, epoch: string, data: object): string {
  return JSON.stringify(toCloudEvent(applicationId, { id: newId(), type, time: new Date().toISOString(), epoch, data }));
}
