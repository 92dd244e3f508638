import { create, fromJson, hasOption, type JsonValue, type MessageInitShape, toJson } from '@bufbuild/protobuf';
import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { currentContext } from '@latchkey/kit/log/request-context';
import { fromRow } from '@latchkey/kit/rpc/from-row';
import { newId, parseId } from '@latchkey/kit/validation/id';
import { isStorable } from '@latchkey/kit/validation/text';
import {
  type BatchGetLiveStatesRequest,
  DeletedApplicationSchema,
  type ListApplicationEventsRequest,
  type ListDeletedApplicationsRequest,
  type PullApplicationEventsRequest,
} from '@latchkey/proto/latchkey/apps/v1/application_pb';
import { ApplicationEventSchema, live } from '@latchkey/proto/latchkey/apps/v1/event_pb';
import type { ApplicationRow } from '../application/application.store.ts';
import { parseRef } from '../application/application-ref.ts';
import { parsePage, parsePageSize } from '../application/page-token.ts';
import type { AppsContext } from '../context.ts';
import type { Db } from '../db/schema.ts';
import { errors } from '../proto-errors.ts';
import { fingerprintOf } from '../runtime-key/runtime-key-text.ts';
import { insertEvents, type LoggedRow, selectDeletions, selectLiveStates, selectOwnEventsAfter } from './event-log.store.ts';

export type EventBody = Exclude<NonNullable<MessageInitShape<typeof ApplicationEventSchema>['event']>, { case: undefined }>;

/** Columns of an application that its events need. */
export type EventSource = Pick<ApplicationRow, 'id' | 'account_id' | 'last_sequence'>;

/** The application's next `sequence` for an event for live clients; null for an internal event. */
export function nextSequence(application: EventSource, event: EventBody): number | null {
  return hasOption(ApplicationEventSchema.field[event.case], live) ? Number(application.last_sequence) + 1 : null;
}

/**
 * Adds an event of each application to the log, with its next `sequence` if it is for live clients.
 *
 * @param applications at least one, as they were before the change, with their rows locked
 */
export async function logEvents(tx: Db, applications: readonly EventSource[], event: EventBody, now: Date): Promise<void> {
  const type = ApplicationEventSchema.field[event.case].name;
  const message = create(ApplicationEventSchema, { event });
  const context = currentContext();
  const json = toJson(ApplicationEventSchema, message, { useProtoFieldName: true }) as Record<string, JsonValue>;
  const shared = { type, data: JSON.stringify(json[type]), created_at: now, call_origin: context && JSON.stringify(context) };
  const rows = applications.map((application) => ({
    ...shared,
    id: newId(),
    application_id: application.id,
    account_id: application.account_id,
    sequence: nextSequence(application, event),
  }));
  await insertEvents(tx, rows);
}

/**
 * A page of an application's events for live clients, in order of `sequence` and without gaps. It
 * begins later than requested if the log does not go back so far.
 *
 * @throws `page_token_invalid` for a page size out of bounds
 */
export async function listEvents(ctx: AppsContext, request: ListApplicationEventsRequest) {
  const limit = parsePageSize(request.pageSize);
  const applicationId = parseId(request.applicationId);
  const rows = applicationId ? await ctx.reads.selectEvents(applicationId, request.afterSequence, limit) : [];
  return { epoch: rows[0]?.epoch ?? '', events: rows.map(toEvent) };
}

function toEvent({ id, sequence, created_at, type, data }: Omit<LoggedRow, 'epoch'>) {
  // Ignores fields that a later release has added.
  const event = fromJson(ApplicationEventSchema, { [type]: data as JsonValue }, { ignoreUnknownFields: true });
  return { id, sequence: BigInt(sequence), createdAt: timestampFromDate(created_at), event };
}

/**
 * The next events of an application after a position, for its owner; without one, from the
 * beginning of the log.
 *
 * @returns `next` is the position after them. `gap` is true if events between the position and the
 *   first of them are gone, or the position is of another epoch
 * @throws `application_not_found`, `page_token_invalid`
 */
export async function pullEvents(ctx: AppsContext, request: PullApplicationEventsRequest) {
  const limit = parsePageSize(request.pageSize);
  const { after } = request;
  const known = after && isStorable(after.epoch) ? after : { epoch: '', sequence: 0n };
  const rows = await selectOwnEventsAfter(ctx.pool, parseRef(request), known, limit);
  const [first] = rows;
  if (!first) throw errors.application_not_found();
  const { epoch } = first;
  const events = rows.flatMap((row) => (row.id === null ? [] : [toEvent(row)]));
  const last = BigInt(first.last_sequence);
  const sequence = events.at(-1)?.sequence ?? last;
  const isContinuous = events[0] ? events[0].sequence === known.sequence + 1n : last === known.sequence;
  return { events, next: { epoch, sequence }, gap: after !== undefined && !(after.epoch === epoch && isContinuous) };
}

/** Largest time of PostgreSQL and of page tokens, in milliseconds. */
const TIME_MS_MAX = 99_999_999_999_999;

/**
 * A page of deletions of all accounts, oldest first. An empty token marks the last page.
 *
 * @param request `deletedSince` is the earliest time; absent means all that the event log has
 * @throws `page_token_invalid`
 */
export async function listDeletions(ctx: AppsContext, request: ListDeletedApplicationsRequest) {
  const since = request.deletedSince && timestampDate(request.deletedSince);
  const page = parsePage(request);
  if (since && !(Math.abs(since.getTime()) <= TIME_MS_MAX)) throw errors.page_token_invalid();
  const rows = await selectDeletions(ctx.db, since, page);
  const { shown, nextPageToken } = page.cut(rows, (row) => ({ createdAt: row.deleted_at, id: row.application_id }));
  return { applications: shown.map((row) => fromRow(DeletedApplicationSchema, row)), nextPageToken };
}

const LIVE_STATES_MAX = 1_000;

/**
 * Versions of live state that show whether clients are up to date: one for each id that
 * exists, in no order.
 *
 * @throws `page_token_invalid` for more than 1,000 ids
 */
export async function getLiveStates(ctx: AppsContext, { applicationIds }: BatchGetLiveStatesRequest) {
  if (applicationIds.length > LIVE_STATES_MAX) throw errors.page_token_invalid();
  const ids = applicationIds.map(parseId).filter((id) => id !== undefined);
  if (ids.length === 0) return [];
  const rows = await selectLiveStates(ctx.pool, ids, ctx.clock());
  return rows.map((row) => ({
    applicationId: row.id,
    epoch: row.epoch,
    lastSequence: BigInt(row.last_sequence),
    socketKeyFingerprint: fingerprintOf(row.socket_key_hash),
    ...(row.previous_hash && {
      previousSocketKeyFingerprint: fingerprintOf(row.previous_hash),
      previousSocketKeyExpiresAt: timestampFromDate(row.expires_at),
    }),
  }));
}
