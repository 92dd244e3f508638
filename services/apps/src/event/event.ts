import { create, type JsonValue, type MessageInitShape, toJson } from '@bufbuild/protobuf';
import { currentOrigin } from '@latchkey/kit/call-origin';
import { newId } from '@latchkey/kit/id';
import { ApplicationEventSchema } from '@latchkey/proto/latchkey/apps/v1/event_pb';
import type { NewEventRow } from './event.store.ts';

/** What happened, as the protocol's oneof says it. */
export type EventBody = Exclude<NonNullable<MessageInitShape<typeof ApplicationEventSchema>['event']>, { case: undefined }>;

/** The application that an event is about, with its row locked. */
export interface EventSubject {
  readonly id: string;
  readonly accountId: string;
  readonly lastSequence: number;
}

/** Events that live clients do not hear of. */
const SILENT = new Set<EventBody['case']>(['runtimeKeyRotated']);

/**
 * The log row for an event. Its `sequence` is the next of the application, or null where live clients do not hear of it; the caller
 * writes the row, and the application's new `lastSequence`, in the transaction of the change.
 *
 * @param subject the application before the change
 * @param now time of the change
 */
export function toEventRow(subject: EventSubject, event: EventBody, now: Date): NewEventRow {
  const type = ApplicationEventSchema.field[event.case].name;
  const message = create(ApplicationEventSchema, { event });
  const origin = currentOrigin();
  const json = toJson(ApplicationEventSchema, message, { useProtoFieldName: true }) as Record<string, JsonValue>;
  return {
    id: newId(),
    application_id: subject.id,
    account_id: subject.accountId,
    sequence: SILENT.has(event.case) ? null : subject.lastSequence + 1,
    type,
    data: JSON.stringify(json[type]),
    created_at: now,
    call_origin: origin && JSON.stringify(origin),
  };
}
