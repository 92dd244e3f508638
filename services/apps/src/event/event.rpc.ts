import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import type { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import type { AppsContext } from '../context.ts';
import { listEvents } from './logged-event.ts';

/** Reading the event log. */
export function eventRpc(ctx: AppsContext): Pick<ServiceImpl<typeof ApplicationService>, 'listApplicationEvents'> {
  return {
    async listApplicationEvents(request) {
      const events = await listEvents(ctx, request);
      return { events: events.map((event) => ({ ...event, createdAt: timestampFromDate(event.createdAt) })) };
    },
  };
}
