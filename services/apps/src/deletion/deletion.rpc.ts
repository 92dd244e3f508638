import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ServiceImpl } from '@connectrpc/connect';
import type { ApplicationService } from '@latchkey/proto/latchkey/apps/v1/application_pb';
import type { AppsContext } from '../context.ts';
import { listDeletions } from './deletion.ts';

/** Listing deletions, for services that clean up after them. */
export function deletionRpc(ctx: AppsContext): Pick<ServiceImpl<typeof ApplicationService>, 'listDeletedApplications'> {
  return {
    async listDeletedApplications({ deletedSince, pageSize, pageToken }) {
      const since = deletedSince && timestampDate(deletedSince);
      const { deletions, nextPageToken } = await listDeletions(ctx, { since, pageSize, pageToken });
      const applications = deletions.map(({ applicationId, accountId, deletedAt }) => ({
        applicationId,
        accountId,
        deletedAt: timestampFromDate(deletedAt),
      }));
      return { applications, nextPageToken };
    },
  };
}
