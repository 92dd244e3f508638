import { actingFor, bindCalls } from '@latchkey/audit/actor';
import type { RpcImpl } from '@latchkey/kit/rpc/route';
import type { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import * as application from './application/application.ts';
import * as licenseLevels from './application/license-levels.ts';
import type { AppsContext } from './context.ts';
import * as event from './event/event-log.ts';
import * as runtimeKey from './runtime-key/runtime-key.ts';
import * as setting from './setting/setting.ts';
import * as usage from './usage/usage.ts';

export function appsRpc(ctx: AppsContext): RpcImpl<typeof ApplicationService> {
  const read = bindCalls(() => ctx);
  const change = bindCalls((call) => actingFor(ctx, call));
  return {
    createApplication: change(application.createApplication, (applicationId) => ({ applicationId })),
    listApplications: read(application.listApplications),
    listApplicationSummaries: read(application.listSummaries),
    getApplicationUsage: read(application.getApplicationUsage),
    findOwnedApplications: read(application.findOwnedApplications, (applicationIds) => ({ applicationIds })),
    deleteApplication: change(application.deleteApplication),
    deleteAccountApplications: change(application.deleteAccountApplications, (hasMore) => ({ hasMore })),
    listLicenseLevels: read(licenseLevels.listLicenseLevels),
    replaceLicenseLevels: change(licenseLevels.replaceLicenseLevels),
    getApplicationSettings: read(setting.getSettings),
    updateApplicationSetting: change(setting.updateSetting),
    lookUpApplication: read(runtimeKey.lookUpApplication),
    rotateRuntimeKey: change(runtimeKey.rotateRuntimeKey),
    endKeyOverlap: change(runtimeKey.endKeyOverlap),
    listApplicationEvents: read(event.listEvents),
    pullApplicationEvents: read(event.pullEvents),
    recordUsage: ({ counts }) => usage.recordUsage(ctx, counts),
    listDailyUsage: read(usage.listDailyUsage),
    listDeletedApplications: read(event.listDeletions),
    batchGetLiveStates: read(event.getLiveStates, (states) => ({ states })),
  };
}
