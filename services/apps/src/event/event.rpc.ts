import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import type { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import type { AppsContext } from '../context.ts';
import { getLiveStates, listDeletions, listEvents } from './event.ts';

type Methods = 'listApplicationEvents' | 'listDeletedApplications' | 'batchGetLiveStates';

/** Reading the event log, for services that may have missed an event. */
export function eventRpc(ctx: AppsContext): Pick<ServiceImpl<typeof ApplicationService>, Methods> {
  return {
    async listApplicationEvents(request) {
      const events = await listEvents(ctx, request);
      return { events: events.map((event) => ({ ...event, createdAt: timestampFromDate(event.createdAt) })) };
    },
    async listDeletedApplications({ deletedSince, pageSize, pageToken }) {
      const since = deletedSince && timestampDate(deletedSince);
      const { deletions, nextPageToken } = await listDeletions(ctx, { since, pageSize, pageToken });
      const applications = deletions.map((deletion) => ({ ...deletion, deletedAt: timestampFromDate(deletion.deletedAt) }));
      return { applications, nextPageToken };
    },
    async batchGetLiveStates({ applicationIds }) {
      return { states: await getLiveStates(ctx, applicationIds) };
    },
  };
}
