import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { Acting } from '@latchkey/audit/actor';
import { recordAudit } from '@latchkey/audit/record';
import { runTransaction } from '@latchkey/audit/transaction';
import { withoutInvisible } from '@latchkey/contract/invisible';
import { APPLICATION_NAME, SEARCH_PARAMS_LENGTH_MAX } from '@latchkey/contract/lengths';
import { fromRow } from '@latchkey/kit/rpc/from-row';
import { newId, parseId } from '@latchkey/kit/validation/id';
import { hasLength } from '@latchkey/kit/validation/text';
import {
  ApplicationSummarySchema,
  type CreateApplicationRequest,
  type DeleteAccountApplicationsRequest,
  type FindOwnedApplicationsRequest,
  type GetApplicationUsageRequest,
  type ListApplicationSummariesRequest,
  type ListApplicationsRequest,
} from '@latchkey/proto/latchkey/apps/v1/application_pb';
import type { AppsContext } from '../context.ts';
import { logEvents } from '../event/event-log.ts';
import { errors } from '../proto-errors.ts';
import { toStatus } from '../setting/setting.ts';
import * as store from './application.store.ts';
import type { ApplicationRef } from './application-ref.ts';
import { changeApplication, describeChange } from './change-application.ts';
import { parsePage, parsePageSize } from './page-token.ts';

/**
 * Creates an application with the defaults of the schema.
 *
 * @param request its name has the length `APPLICATION_NAME` in NFC, without invisible characters
 *   and outer white space; it need not be unique
 * @returns the new application's id
 * @throws `account_id_invalid`, `application_name_invalid`, `applications_limit_exceeded`, and
 *   `queue_full` if too many creations of the account wait
 */
export async function createApplication(ctx: Acting<AppsContext>, request: CreateApplicationRequest): Promise<string> {
  const accountId = parseAccountId(request.accountId);
  const name = withoutInvisible(request.name);
  if (!hasLength(name, APPLICATION_NAME.min, APPLICATION_NAME.max)) throw errors.application_name_invalid();
  ctx.writes.check(accountId);
  return ctx.writes.run(accountId, () => insertNewApplication(ctx, accountId, name));
}

async function insertNewApplication(ctx: Acting<AppsContext>, accountId: string, name: string): Promise<string> {
  const id = newId();
  const now = ctx.clock();
  const socketKey = ctx.vault.create('socketKey', id);
  const httpKey = ctx.vault.create('httpKey', id);
  return runTransaction(ctx.db, async (tx) => {
    await store.lockAccount(tx, accountId);
    if ((await store.countApplications(tx, accountId)) >= ctx.applicationsMax) throw errors.applications_limit_exceeded();
    await store.insertApplication(tx, {
      id,
      account_id: accountId,
      name,
      socket_key_hash: socketKey.hash,
      socket_key_sealed: socketKey.sealed,
      http_key_hash: httpKey.hash,
      http_key_sealed: httpKey.sealed,
      runtime_keys_updated_at: now,
      created_at: now,
    });
    await recordAudit(tx, ctx.origin, describeChange({ accountId, applicationId: id }, 'application.created', { name }));
    return id;
  });
}

/** The number of applications of an account and its limit. Throws `account_id_invalid`. */
export async function getApplicationUsage(ctx: AppsContext, request: GetApplicationUsageRequest) {
  const count = await store.countApplications(ctx.db, parseAccountId(request.accountId));
  return { applicationCount: BigInt(count), applicationCountMax: BigInt(ctx.applicationsMax) };
}

/**
 * A page of applications with their runtime keys in clear (specification 2.1), oldest first: those
 * of the filter, or all without one. An empty token marks the last page.
 *
 * @throws `account_id_invalid`, `page_token_invalid`
 */
export async function listApplications(ctx: AppsContext, request: ListApplicationsRequest) {
  const accountId = parseAccountId(request.accountId);
  const ids = request.filter && parseIds(request.filter.applicationIds);
  const page = parsePage(request);
  if (ids?.length === 0) return { applications: [] };
  const rows = await store.selectApplications(ctx.db, accountId, ids, page, ctx.clock());
  const { shown, nextPageToken } = page.cut(rows, (row) => ({ createdAt: new Date(row.created_ms), id: row.id }));
  const applications = shown.map(({ id, name, previous_keys: previous, ...row }) => ({
    id,
    name,
    runtimeKeys: {
      socketKey: ctx.vault.open('socketKey', id, row.socket_key_hex),
      httpKey: ctx.vault.open('httpKey', id, row.http_key_hex),
      updatedAt: timestampFromMs(row.keys_updated_ms),
      previousSocketKey: toPreviousKey(previous?.socketKey),
      previousHttpKey: toPreviousKey(previous?.httpKey),
    },
  }));
  return { applications, nextPageToken };
}

function toPreviousKey(key: store.PreviousKey | undefined) {
  if (!key) return undefined;
  return {
    expiresAt: timestampFromMs(key.expires_ms),
    ...(key.used_ms !== null && { lastUsedAt: timestampFromMs(key.used_ms) }),
  };
}

/**
 * A numbered page, from 1, of applications for people: those of the filter, or all without one.
 * Past the end it is empty.
 *
 * @throws `account_id_invalid`, `page_token_invalid` for a page, a search or ranks out of bounds
 */
export async function listSummaries(ctx: AppsContext, request: ListApplicationSummariesRequest) {
  const accountId = parseAccountId(request.accountId);
  const { page, search, ranks } = request;
  const limit = parsePageSize(request.pageSize);
  const isValid = Number.isInteger(page) && page >= 1 && hasLength(search, 0, SEARCH_PARAMS_LENGTH_MAX);
  if (!isValid || !ranks.every(({ applicationId }) => parseId(applicationId))) throw errors.page_token_invalid();
  const ids = request.filter && parseIds(request.filter.applicationIds);
  const rows = await store.selectSummaries(ctx.db, accountId, { ...request, ids, limit, offset: (page - 1) * limit });
  const summaries = rows
    .filter(({ id }) => id !== null)
    .map((row) => ({ ...fromRow(ApplicationSummarySchema, row), status: toStatus(row.status) }));
  return { summaries, total: rows[0]?.total ?? 0 };
}

/** The ids that are applications of the account. Throws `account_id_invalid`. */
export async function findOwnedApplications(ctx: AppsContext, request: FindOwnedApplicationsRequest): Promise<string[]> {
  const accountId = parseAccountId(request.accountId);
  const ids = parseIds(request.applicationIds);
  return ids.length === 0 ? [] : store.selectOwnedIds(ctx.db, accountId, ids);
}

/**
 * Deletes an application, with the event that starts the clean-up in other services.
 *
 * @throws `application_not_found`
 */
export async function deleteApplication(ctx: Acting<AppsContext>, ref: ApplicationRef): Promise<void> {
  await changeApplication(ctx, ref, async ({ tx, row, addEvent, record }) => {
    await addEvent({ case: 'deleted', value: {} }, ctx.clock());
    await store.removeApplication(tx, row.id);
    await record('application.deleted', { name: row.name });
  });
}

/** One transaction deletes this many in some 50 ms. */
export const DELETED_AT_ONCE_MAX = 200;

/**
 * Deletes a set of applications of an account as {@link deleteApplication} does one, with the same
 * number of statements. May be repeated, and run concurrently.
 *
 * @returns whether the account may have more
 * @throws `account_id_invalid`
 */
export async function deleteAccountApplications(ctx: Acting<AppsContext>, request: DeleteAccountApplicationsRequest) {
  const accountId = parseAccountId(request.accountId);
  const count = await runTransaction(ctx.db, async (tx) => {
    const rows = await store.removeApplicationsOf(tx, accountId, DELETED_AT_ONCE_MAX);
    if (rows.length === 0) return 0;
    await logEvents(tx, rows, { case: 'deleted', value: {} }, ctx.clock());
    const entries = rows.map(({ id, name }) => describeChange({ accountId, applicationId: id }, 'application.deleted', { name }));
    await recordAudit(tx, ctx.origin, ...entries);
    return rows.length;
  });
  if (count > 0) ctx.wakeRelay();
  return count === DELETED_AT_ONCE_MAX;
}

function parseAccountId(text: string): string {
  const id = parseId(text);
  if (!id) throw errors.account_id_invalid();
  return id;
}

function parseIds(texts: readonly string[]): string[] {
  return [...new Set(texts.map(parseId).filter((id) => id !== undefined))];
}
