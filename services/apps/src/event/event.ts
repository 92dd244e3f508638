import { create, fromJson, type JsonValue, type MessageInitShape, toJson } from '@bufbuild/protobuf';
import { currentOrigin } from '@latchkey/kit/log/request-context';
import { newId, parseId } from '@latchkey/kit/validation/id';
import { type ApplicationEvent, ApplicationEventSchema } from '@latchkey/proto/latchkey/apps/v1/event_pb';
import type { ApplicationRow } from '../application/application.store.ts';
import { parsePage, parsePageSize } from '../application/page.ts';
import type { AppsContext } from '../context.ts';
import { errors } from '../errors.ts';
import { fingerprintOf } from '../runtime-key/vault.ts';
import { type NewEventRow, selectDeletions, selectEventsAfter, selectLiveStates } from './event.store.ts';

/** An event, as the protocol's oneof says it. */
export type EventBody = Exclude<NonNullable<MessageInitShape<typeof ApplicationEventSchema>['event']>, { case: undefined }>;

/** Events that live clients are not notified of. */
const SILENT = new Set<EventBody['case']>(['runtimeKeyRotated']);

/**
 * The row of the log for an event. Its `sequence` is the application's next, or null if live clients are not notified. The caller
 * stores the row and the new `last_sequence` in the transaction of the change.
 *
 * @param application the application before the change, whose row is locked
 */
export function toEventRow(
  application: Pick<ApplicationRow, 'id' | 'account_id' | 'last_sequence'>,
  event: EventBody,
  now: Date,
): NewEventRow {
  const type = ApplicationEventSchema.field[event.case].name;
  const message = create(ApplicationEventSchema, { event });
  const origin = currentOrigin();
  const json = toJson(ApplicationEventSchema, message, { useProtoFieldName: true }) as Record<string, JsonValue>;
  return {
    id: newId(),
    application_id: application.id,
    account_id: application.account_id,
    sequence: SILENT.has(event.case) ? null : Number(application.last_sequence) + 1,
    type,
    data: JSON.stringify(json[type]),
    created_at: now,
    call_origin: origin && JSON.stringify(origin),
  };
}

/** An event for live clients in the log. */
export interface LoggedEvent {
  readonly id: string;
  readonly sequence: bigint;
  readonly createdAt: Date;
  readonly event: ApplicationEvent;
}

/**
 * A page of the events for live clients of an application, in order of `sequence` and without gaps: changes of one application
 * follow one another. The first is a later one than requested if the log does not go back so far.
 *
 * @throws `page_token_invalid` for a page size out of bounds
 */
export async function listEvents(
  ctx: AppsContext,
  request: { readonly applicationId: string; readonly afterSequence: bigint; readonly pageSize: number },
): Promise<LoggedEvent[]> {
  const limit = parsePageSize(request.pageSize);
  const applicationId = parseId(request.applicationId);
  if (!applicationId) return [];
  const rows = await selectEventsAfter(ctx.pool, applicationId, request.afterSequence, limit);
  return rows.map(({ id, sequence, created_at, type, data }) => {
    // Ignores fields that a later release has added.
    const event = fromJson(ApplicationEventSchema, { [type]: data as JsonValue }, { ignoreUnknownFields: true });
    return { id, sequence: BigInt(sequence), createdAt: created_at, event };
  });
}

/** A deleted application. */
export interface Deletion {
  readonly applicationId: string;
  readonly accountId: string;
  readonly deletedAt: Date;
}

/** Largest time of PostgreSQL and of page tokens, in milliseconds. */
const TIME_MS_MAX = 99_999_999_999_999;

/**
 * A page of deletions of all accounts, oldest first. An empty token marks the last page.
 *
 * @param request `since` is the earliest time; undefined means as far back as the event log goes
 * @throws `page_token_invalid`
 */
export async function listDeletions(
  ctx: AppsContext,
  request: { readonly since: Date | undefined; readonly pageSize: number; readonly pageToken: string },
): Promise<{ deletions: Deletion[]; nextPageToken: string }> {
  const { since } = request;
  const page = parsePage(request.pageSize, request.pageToken);
  if (since && !(Math.abs(since.getTime()) <= TIME_MS_MAX)) throw errors.page_token_invalid();
  const rows = await selectDeletions(ctx.db, { since, after: page.after, limit: page.size + 1 });
  const { shown, nextPageToken } = page.cut(rows, (row) => ({ createdAt: row.created_at, id: row.application_id }));
  const deletions = shown.map((row) => ({
    applicationId: row.application_id,
    accountId: row.account_id,
    deletedAt: row.created_at,
  }));
  return { deletions, nextPageToken };
}

const LIVE_STATES_MAX = 1_000;

/**
 * What shows whether the live clients of applications are up to date: one state for each id that exists, in no order.
 *
 * @throws `page_token_invalid` for more than 1,000 ids
 */
export async function getLiveStates(ctx: AppsContext, texts: readonly string[]) {
  if (texts.length > LIVE_STATES_MAX) throw errors.page_token_invalid();
  const ids = texts.map(parseId).filter((id) => id !== undefined);
  if (ids.length === 0) return [];
  const rows = await selectLiveStates(ctx.pool, ids);
  return rows.map((row) => ({
    applicationId: row.id,
    lastSequence: BigInt(row.last_sequence),
    socketKeyFingerprint: fingerprintOf(row.socket_key_hash),
  }));
}
