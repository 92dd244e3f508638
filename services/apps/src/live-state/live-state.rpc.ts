import type { ServiceImpl } from '@connectrpc/connect';
import type { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import type { AppsContext } from '../context.ts';
import { getLiveStates } from './live-state.ts';

/** Telling whether live clients are up to date. */
export function liveStateRpc(ctx: AppsContext): Pick<ServiceImpl<typeof ApplicationService>, 'batchGetLiveStates'> {
  return {
    async batchGetLiveStates({ applicationIds }) {
      return { states: await getLiveStates(ctx, applicationIds) };
    },
  };
}
