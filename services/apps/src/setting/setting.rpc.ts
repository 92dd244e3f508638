import type { ServiceImpl } from '@connectrpc/connect';
import { actingFor } from '@latchkey/audit/actor';
import type { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import type { AppsContext } from '../context.ts';
import { getSettings, toSettingsMessage, updateSetting } from './setting.ts';

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
