import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ServiceImpl } from '@connectrpc/connect';
import { actingFor } from '@latchkey/audit/actor';
import {
  type ApplicationService,
  type ApplicationSettingsSchema,
  ApplicationStatus,
} from '@latchkey/proto/latchkey/apps/v1/application_pb';
import type { AppsContext } from '../context.ts';
import { getSettings, type SettingsRow, updateSetting } from './setting.ts';

type Impl = ServiceImpl<typeof ApplicationService>;

/** Reading and changing settings. */
export function settingRpc(ctx: AppsContext): Pick<Impl, 'getApplicationSettings' | 'updateApplicationSetting'> {
  return {
    async getApplicationSettings(ref) {
      return { settings: toSettingsMessage(await getSettings(ctx, ref)) };
    },
    async updateApplicationSetting(request, call) {
      await updateSetting(actingFor(ctx, call), request, request.field, request.value.value);
      return {};
    },
  };
}

/** Settings as the protocol has them. */
export function toSettingsMessage(row: SettingsRow): MessageInitShape<typeof ApplicationSettingsSchema> {
  return {
    licenseRequiresClientId: row.license_requires_client_id,
    userRequiresClientId: row.user_requires_client_id,
    userRequiresLicense: row.user_requires_license,
    version: row.version,
    status: row.status === 'paused' ? ApplicationStatus.PAUSED : ApplicationStatus.ONLINE,
  };
}
