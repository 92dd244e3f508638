import { timestampDate, timestampFromDate, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { actingFor, bindCalls } from '@latchkey/audit/actor';
import { fromRow } from '@latchkey/kit/rpc/from-row';
import type { RpcImpl } from '@latchkey/kit/rpc/route';
import { etagOf } from '@latchkey/kit/validation/etag';
import {
  type ApplicationService,
  ApplicationSummarySchema,
  DailyUsageSchema,
  DeletedApplicationSchema,
  RuntimeKeyType,
  SummaryOrder,
} from '@latchkey/proto/latchkey/apps/v1/application_pb';
import * as application from './application/application.ts';
import * as licenseLevels from './application/license-levels.ts';
import type { AppsContext } from './context.ts';
import * as event from './event/event-log.ts';
import { errors } from './proto-errors.ts';
import * as runtimeKey from './runtime-key/runtime-key.ts';
import * as setting from './setting/setting.ts';
import * as usage from './usage/usage.ts';

export function appsRpc(ctx: AppsContext): RpcImpl<typeof ApplicationService> {
  const bind = bindCalls((call) => actingFor(ctx, call));
  return {
    createApplication: bind(application.createApplication, (applicationId) => ({ applicationId })),
    async listApplications(request) {
      const { accountId, filter } = request;
      const page = await application.listApplications(ctx, accountId, filter?.applicationIds, request);
      const { applications, nextPageToken } = page;
      const messages = applications.map(({ id, name, socketKey, httpKey, keysUpdatedAt, previousKeys }) => ({
        id,
        name,
        runtimeKeys: {
          socketKey,
          httpKey,
          updatedAt: timestampFromDate(keysUpdatedAt),
          previousSocketKey: toPreviousKey(previousKeys.socketKey),
          previousHttpKey: toPreviousKey(previousKeys.httpKey),
        },
      }));
      return { applications: messages, nextPageToken };
    },
    async listApplicationSummaries(request) {
      const { accountId, filter, order, ranks: given } = request;
      const ranks = given.map(({ applicationId: id, rank }) => ({ id, rank }));
      const page = { ...request, ranks, order: ORDERS[order] ?? 'name' };
      const { summaries, total } = await application.listSummaries(ctx, accountId, filter?.applicationIds, page);
      const messages = summaries.map((row) => ({
        ...fromRow(ApplicationSummarySchema, row),
        status: setting.toStatus(row.status),
      }));
      return { summaries: messages, total };
    },
    async getApplicationUsage({ accountId }) {
      const { count, countMax } = await application.getApplicationUsage(ctx, accountId);
      return { applicationCount: BigInt(count), applicationCountMax: BigInt(countMax) };
    },
    async findOwnedApplications({ accountId, applicationIds }) {
      return { applicationIds: await application.findOwnedApplications(ctx, accountId, applicationIds) };
    },
    deleteApplication: bind(application.deleteApplication),
    deleteAccountApplications: bind(application.deleteAccountApplications, (hasMore) => ({ hasMore })),
    async listLicenseLevels(ref) {
      const levels = await licenseLevels.listLicenseLevels(ctx, ref);
      return { levels, etag: etagOf(levels) };
    },
    replaceLicenseLevels: bind(licenseLevels.replaceLicenseLevels),
    async getApplicationSettings(ref) {
      const row = await setting.getSettings(ctx, ref);
      return { settings: setting.toSettingsMessage(row), etag: setting.settingsEtag(row) };
    },
    updateApplicationSetting: bind(setting.updateSetting),
    async lookUpApplication({ key }) {
      if (key.case === undefined) throw errors.runtime_key_invalid();
      const { row, keyFingerprint } = await runtimeKey.lookUpApplication(ctx, key.case, key.value);
      return {
        applicationId: row.id,
        accountId: row.account_id,
        name: row.name,
        settings: setting.toSettingsMessage(row),
        lastSequence: BigInt(row.last_sequence),
        epoch: row.epoch,
        keyFingerprint,
      };
    },
    rotateRuntimeKey: bind((acting, request) => runtimeKey.rotateRuntimeKey(acting, request, toKeyType(request.type))),
    endKeyOverlap: bind((acting, request) => runtimeKey.endKeyOverlap(acting, request, toKeyType(request.type))),
    async listApplicationEvents(request) {
      const { epoch, events } = await event.listEvents(ctx, request);
      return { epoch, events: events.map(toLoggedEvent) };
    },
    async pullApplicationEvents(request) {
      const after = request.after && { ...request.after, sequence: `${request.after.sequence}` };
      const { events, ...position } = await event.pullEvents(ctx, request, after, request.pageSize);
      return { ...position, events: events.map(toLoggedEvent) };
    },
    recordUsage: ({ counts }) => usage.recordUsage(ctx, counts),
    async listDailyUsage(request) {
      const rows = await usage.listDailyUsage(ctx, request, request.days);
      return { days: rows.map((row) => fromRow(DailyUsageSchema, row)) };
    },
    async listDeletedApplications({ deletedSince, pageSize, pageToken }) {
      const since = deletedSince && timestampDate(deletedSince);
      const { deletions, nextPageToken } = await event.listDeletions(ctx, { since, pageSize, pageToken });
      return { applications: deletions.map((row) => fromRow(DeletedApplicationSchema, row)), nextPageToken };
    },
    async batchGetLiveStates({ applicationIds }) {
      const states = await event.getLiveStates(ctx, applicationIds);
      return {
        states: states.map(({ previousSocketKey: previous, ...state }) => ({
          ...state,
          ...(previous && {
            previousSocketKeyFingerprint: previous.fingerprint,
            previousSocketKeyExpiresAt: timestampFromDate(previous.expiresAt),
          }),
        })),
      };
    },
  };
}

const toLoggedEvent = <E extends { readonly createdAt: Date }>(logged: E) => ({
  ...logged,
  createdAt: timestampFromDate(logged.createdAt),
});

const ORDERS = {
  [SummaryOrder.UNSPECIFIED]: 'name',
  [SummaryOrder.NAME]: 'name',
  [SummaryOrder.STATUS]: 'status',
  [SummaryOrder.VERSION]: 'version',
  [SummaryOrder.UPDATED_AT]: 'updatedAt',
  [SummaryOrder.RANK]: 'rank',
} as const;

function toPreviousKey(key: { readonly expires_ms: number; readonly used_ms: number | null } | undefined) {
  if (!key) return undefined;
  return {
    expiresAt: timestampFromMs(key.expires_ms),
    ...(key.used_ms !== null && { lastUsedAt: timestampFromMs(key.used_ms) }),
  };
}

function toKeyType(type: RuntimeKeyType) {
  if (type === RuntimeKeyType.SOCKET) return 'socketKey';
  if (type === RuntimeKeyType.HTTP) return 'httpKey';
  throw errors.runtime_key_type_invalid();
}
