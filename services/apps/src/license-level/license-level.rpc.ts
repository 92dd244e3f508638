import type { ServiceImpl } from '@connectrpc/connect';
import { actingFor } from '@latchkey/audit/actor';
import type { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import type { AppsContext } from '../context.ts';
import { listLicenseLevels, replaceLicenseLevels } from './license-level.ts';

type Impl = ServiceImpl<typeof ApplicationService>;

/** Reading and replacing license levels. */
export function licenseLevelRpc(ctx: AppsContext): Pick<Impl, 'listLicenseLevels' | 'replaceLicenseLevels'> {
  return {
    async listLicenseLevels(ref) {
      return { levels: await listLicenseLevels(ctx, ref) };
    },
    async replaceLicenseLevels(request, call) {
      await replaceLicenseLevels(actingFor(ctx, call), request, request.levels);
      return {};
    },
  };
}
