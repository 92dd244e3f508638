import { fromJson, type JsonValue } from '@bufbuild/protobuf';
import { parseId } from '@latchkey/kit/id';
import { type ApplicationEvent, ApplicationEventSchema } from '@latchkey/proto/latchkey/apps/v1/event_pb';
import { parsePageSize } from '../application/page.ts';
import type { AppsContext } from '../context.ts';
import { selectEventsAfter } from './event.store.ts';

/** An event that live clients hear of, as the log has it. */
export interface LoggedEvent {
  readonly id: string;
  readonly sequence: bigint;
  readonly createdAt: Date;
  readonly event: ApplicationEvent;
}

/** Which events to list. */
export interface EventsRequest {
  readonly applicationId: string;
  readonly afterSequence: bigint;
  readonly pageSize: number;
}

/**
 * A page of what live clients hear of an application, in order of `sequence` and without gaps. Changes of one application follow one another, so
 * that an event is never seen before the ones that it comes after. The first is a later one than was asked for where the log does not go back so far.
 *
 * @throws `page_token_invalid` for a page size out of bounds
 */
export async function listEvents(ctx: AppsContext, request: EventsRequest): Promise<LoggedEvent[]> {
  const limit = parsePageSize(request.pageSize);
  const applicationId = parseId(request.applicationId);
  if (!applicationId) return [];
  const rows = await selectEventsAfter(ctx.pool, applicationId, request.afterSequence, limit);
  return rows.map((row) => ({
    id: row.id,
    sequence: BigInt(row.sequence),
    createdAt: row.created_at,
    event: readEvent(row.type, row.data),
  }));
}

/** The message that a row was written from. What a later release has added to it is left out. */
function readEvent(type: string, data: unknown): ApplicationEvent {
  return fromJson(ApplicationEventSchema, { [type]: data as JsonValue }, { ignoreUnknownFields: true });
}
